package honesty

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeRenewedOthers judges renewals that the lock made by itself and reported. Once another owner has been granted the
// lock, the servers do not have the first hold any more, and a server that confirms its renewal has renewed the other's
// hold, or has made the first one again. When the request was sent is unknown: the other grant has to be older than the
// slack.
func judgeRenewedOthers(c *claims.Check) {
	for i, n := range refs.All(c.H.Notices) {
		if n.F != history.Renewed || c.H.Limit(n.Key) != 0 || c.OwnerOrder[n.Owner] != ledger.OrdSequential {
			continue
		}
		mine, held := c.LastHold(n.Owner, n.Key, n.Time)
		if !held {
			continue
		}
		other := grantedAfter(c, mine, n.Time-c.O.Slack())
		if other < 0 || mayHaveEntered(c, n, c.Holds[mine].From) {
			continue
		}
		if !c.O.Applies(claims.HonestData) || !explainRenewal(c.All, &c.Holds[mine], &c.Holds[other], n.Time) {
			c.Found.Add(finding.Finding{Rule: claims.SelfRenewed, X: other, Y: i, Start: c.Holds[other].From, End: n.Time})
		}
	}
}

// grantedAfter is the last hold of the same key that began after hold i and before t, by another owner, that does not
// share the lock with readers, and whose promise was in force when it began: hold i was not granted after it. -1: none.
func grantedAfter(c *claims.Check, i int32, t time.Duration) int32 {
	mine := &c.Holds[i]
	holds := c.ByKey[mine.Key]
	n := sort.Search(len(holds), func(m int) bool { return c.Holds[holds[m]].From+c.O.ClockError >= t })
	for m := n - 1; m >= 0 && n-m <= ledger.MaxLookBack; m-- {
		switch h := &c.Holds[holds[m]]; {
		case h.From-c.O.ClockError <= mine.From:
			return -1
		case h.Owner != mine.Owner && !h.Reader && h.PromisedAt(h.From):
			return holds[m]
		}
	}
	return -1
}

// mayHaveEntered reports whether the owner in n was granted the lock, or may have been, after t and before n.
func mayHaveEntered(c *claims.Check, n *history.Notice, t time.Duration) bool {
	spans := c.Acts()[ledger.OfNotice(n)].Spans
	next := sort.Search(len(spans), func(i int) bool { return c.H.Spans[spans[i]].Call >= n.Time })
	for _, i := range slices.Backward(spans[:next]) {
		switch s := &c.H.Spans[i]; {
		case s.Outcome != history.Info && s.Return <= t: // so do all before it: the operations are sequential
			return false
		case excuse.IsAcquire(s.Op) && s.Outcome != history.Fail && s.Return > t:
			return true
		}
	}
	return false
}

// explainRenewal reports whether a fault may be the reason for a renewal of mine at t, after the other hold had begun:
// another server took over, or a server confirmed it long before, or lost the other hold. A deletion of mine between
// the two explains nothing.
func explainRenewal(d excuse.Disturbances, mine, other *ledger.Hold, t time.Duration) bool {
	instant := excuse.Disturbances{Times: d.Times}
	return d.Any(segment.Of(mine.Asked, t), func(f *excuse.FaultTime) bool {
		return f.ChangesRoles || f.MayAffect(history.AffectsTraffic) || f.MayAffect(history.AffectsDelays) ||
			f.MayAffect(history.AffectsCommands) || f.MayAffect(history.AffectsClients) || f.MayAffect(history.AffectsSlots)
	}) || instant.MayAffect(segment.Of(mine.Asked, mine.From), excuse.AnyClient, history.AffectsData) ||
		instant.MayAffect(segment.Of(other.From, t), excuse.AnyClient, history.AffectsData)
}

func renewedItselfViolation(c *claims.Check, f finding.Finding) property.Violation {
	h, n := &c.Holds[f.X], &c.H.Notices[f.Y]
	w := finding.Involving(c.View, property.BrokenPromise, h.Span)
	w.Rule, w.Events = claims.RuleHolderOnly, []int{c.Granted(h), int(n.Index)}
	w.Text = fmt.Sprintf("the lock renewed %s by itself for client %d at %s, although client %d had been granted it at %s",
		finding.LockName(c.H.Keys[n.Key]), n.Process.Client(c.H.Clients), format.Instant(n.Time), w.Clients[0],
		format.Instant(f.Start))
	return w
}
