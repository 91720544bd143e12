package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// resurrection is a hold that servers had again after its loss was reported.
type resurrection struct {
	notice  int32 // of the loss
	grant   int32 // span: the last one of its owner before
	node    string
	without time.Duration // when that node did not have it
	seen    time.Duration // when it had it again
}

// judgeResurrected finds the holds whose loss was reported and that more servers than may be down have again after
// that: each of them had the hold, then had it not, and then had it although its owner had not requested the lock
// since. Only a fault that may change the servers' data excuses the lock, and a second master.
func (c *honestyCheck) judgeResurrected() {
	seen := c.samples()
	if seen == nil {
		return
	}
	done := make(map[ownerKey]bool)
	for i, n := range refs(c.h.Notices) {
		at := ownerKey{n.Owner, n.Key}
		if n.F != history.Lost || n.Left > 0 || done[at] || c.h.Limit(n.Key) != 0 ||
			c.issueOrder[n.Owner] != ordSequential {
			continue
		}
		done[at] = true
		grant := c.onlyRequest(seen.ledgers().of(at))
		if grant == none || c.h.Spans[grant].Return >= n.Time {
			continue
		}
		if b, is := seen.resurrected(i, grant, c.all, c.o); is {
			c.found.add(finding{rule: resurrected, x: none, y: grant, start: n.Time, end: b.seen, note: b})
		}
	}
}

// onlyRequest is the first grant of an owner, if it is the last acquire or try; none: it is not, or there is none.
func (v *view) onlyRequest(l *ownerLedger) int32 {
	grant, last := none, none
	if l == nil {
		return none
	}
	for _, op := range l.ops {
		if s := &v.h.Spans[op.span]; isAcquire(s.Op) {
			if last = op.span; s.Outcome == history.OK && grant == none {
				grant = last
			}
		}
	}
	if grant != last {
		return none
	}
	return grant
}

// resurrected reports whether more nodes than may be down have a hold again that was reported as lost.
func (s *nodeSamples) resurrected(notice, grant int32, dis disturbances, o Options) (b resurrection, is bool) {
	n, span := &s.h.Notices[notice], &s.h.Spans[grant]
	var all []resurrection
	for node := range s.nodes {
		before, without := none, time.Duration(-1)
		for _, seen := range s.namedIn(node, ownerKey{span.Owner, span.Key}, span.Return) {
			at := seen.place
			if before != none {
				without = max(without, s.lastAbsent(node, ownerKey{span.Owner, span.Key}, before, at))
			}
			before = at
			x := &s.h.Samples[s.nodes[node][at]]
			if without >= 0 && x.Sent > n.Time &&
				!dis.mayAffect(segment{without, x.Time}, anyClient, history.AffectsData) &&
				!(o.MayBeDown == 0 && s.otherMaster(node, span.Key, x.Time, o.slack())) {
				all = append(all, resurrection{notice, grant, x.Node, without, x.Time})
				break
			}
		}
	}
	if len(all) <= o.MayBeDown {
		return b, false
	}
	slices.SortStableFunc(all, func(a, b resurrection) int { return int(a.seen - b.seen) })
	return all[o.MayBeDown], true
}

// lastAbsent is the time at which the last sample between two of a node, by their places, was sent in which it does not
// have a key for an owner; -1: there is none.
func (s *nodeSamples) lastAbsent(node int, at ownerKey, before, after int32) time.Duration {
	between := s.nodes[node][before+1 : after]
	for _, i := range slices.Backward(between) {
		if is, _ := s.presenceOf(i, at.owner, at.key); is == absent {
			return s.h.Samples[i].Sent
		}
	}
	return -1
}

// resurrectedViolation describes a finding of this file.
func (c *honestyCheck) resurrectedViolation(f finding) Violation {
	b := f.note.(resurrection)
	n := &c.h.Notices[b.notice]
	w := c.involving(BrokenPromise, b.grant)
	w.Rule, w.Events = "a hold that was lost is not brought back", []int{int(c.h.Spans[b.grant].Ended), int(n.Index)}
	w.Text = fmt.Sprintf("the loss of %s was reported to client %d at %s, and %s, which did not have it at %s, had it "+
		"again for that owner at %s", lockName(w.Key), w.Clients[0], format.Instant(n.Time), b.node,
		format.Instant(b.without), format.Instant(b.seen))
	return w
}
