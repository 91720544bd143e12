package checker

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeRenewedOthers judges renewals that the lock made by itself and reported. Once another owner has been granted the
// lock, the servers do not have the first hold any more, and a server that confirms its renewal has renewed the other's
// hold, or has made the first one again. When the request was sent is unknown: the other grant has to be older than the
// slack.
func (c *honestyCheck) judgeRenewedOthers() {
	for i, n := range refs(c.h.Notices) {
		if n.F != history.Renewed || c.h.Limit(n.Key) != 0 || c.ownerOrder[n.Owner] != ordSequential {
			continue
		}
		mine, held := c.lastHold(n.Owner, n.Key, n.Time)
		if !held {
			continue
		}
		other := c.grantedAfter(mine, n.Time-c.o.slack())
		if other < 0 || c.mayHaveEntered(n, c.holds[mine].from) {
			continue
		}
		if !c.o.applies(honestData) || !c.all.explainRenewal(&c.holds[mine], &c.holds[other], n.Time) {
			c.found.add(finding{rule: selfRenewed, x: other, y: i, start: c.holds[other].from, end: n.Time})
		}
	}
}

// grantedAfter is the last hold of the same key that began after hold i and before t, by another owner, that does not
// share the lock with readers, and whose promise was in force when it began: hold i was not granted after it. -1: none.
func (c *honestyCheck) grantedAfter(i int32, t time.Duration) int32 {
	mine := &c.holds[i]
	holds := c.byKey[mine.key]
	n := sort.Search(len(holds), func(m int) bool { return c.holds[holds[m]].from+c.o.ClockError >= t })
	for m := n - 1; m >= 0 && n-m <= maxLookBack; m-- {
		switch h := &c.holds[holds[m]]; {
		case h.from-c.o.ClockError <= mine.from:
			return -1
		case h.owner != mine.owner && !h.reader && h.promisedAt(h.from):
			return holds[m]
		}
	}
	return -1
}

// mayHaveEntered reports whether the owner in n was granted the lock, or may have been, after t and before n.
func (c *honestyCheck) mayHaveEntered(n *history.Notice, t time.Duration) bool {
	spans := c.acts()[ownerKey{n.Owner, n.Key}].spans
	next := sort.Search(len(spans), func(i int) bool { return c.h.Spans[spans[i]].Call >= n.Time })
	for _, i := range slices.Backward(spans[:next]) {
		switch s := &c.h.Spans[i]; {
		case s.Outcome != history.Info && s.Return <= t: // so do all before it: the operations are sequential
			return false
		case isAcquire(s.Op) && s.Outcome != history.Fail && s.Return > t:
			return true
		}
	}
	return false
}

// explainRenewal reports whether a fault may be the reason for a renewal of mine at t, after the other hold had begun:
// another server took over, or a server confirmed it long before, or lost the other hold. A deletion of mine between
// the two explains nothing.
func (d disturbances) explainRenewal(mine, other *hold, t time.Duration) bool {
	instant := disturbances{times: d.times}
	return d.any(segment{mine.asked, t}, func(f *faultTime) bool {
		return f.changesRoles || f.mayAffect(history.AffectsTraffic) || f.mayAffect(history.AffectsDelays) ||
			f.mayAffect(history.AffectsCommands) || f.mayAffect(history.AffectsClients) || f.mayAffect(history.AffectsSlots)
	}) || instant.mayAffect(segment{mine.asked, mine.from}, anyClient, history.AffectsData) ||
		instant.mayAffect(segment{other.from, t}, anyClient, history.AffectsData)
}

func (c *honestyCheck) renewedItselfViolation(f finding) Violation {
	h, n := &c.holds[f.x], &c.h.Notices[f.y]
	w := c.involving(BrokenPromise, h.span)
	w.Rule, w.Events = ruleHolderOnly, []int{c.granted(h), int(n.Index)}
	w.Text = fmt.Sprintf("the lock renewed %s by itself for client %d at %s, although client %d had been granted it at %s",
		lockName(c.h.Keys[n.Key]), n.Process.Client(c.h.Clients), format.Instant(n.Time), w.Clients[0],
		format.Instant(f.start))
	return w
}
