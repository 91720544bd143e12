package keeping

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/checker/property"
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

// JudgeResurrected finds the holds whose loss was reported and that more servers than may be down have again after
// that: each of them had the hold, then had it not, and then had it although its owner had not requested the lock
// since. Only a fault that may change the servers' data excuses the lock, and a second master.
func JudgeResurrected(c *claims.Check) {
	seen := c.Samples()
	if seen == nil {
		return
	}
	done := make(map[ledger.OwnerKey]bool)
	for i, n := range refs.All(c.H.Notices) {
		at := ledger.OfNotice(n)
		if n.F != history.Lost || n.Left > 0 || done[at] || c.H.Limit(n.Key) != 0 ||
			c.IssueOrder[n.Owner] != ledger.OrdSequential {
			continue
		}
		done[at] = true
		grant := onlyRequest(c.View, seen.Ledgers().Of(at))
		if grant == refs.None || c.H.Spans[grant].Return >= n.Time {
			continue
		}
		if b, is := resurrected(seen, i, grant, c.All, c.O); is {
			c.Found.Add(finding.Finding{Rule: claims.Resurrected, X: refs.None, Y: grant, Start: n.Time, End: b.seen, Note: b})
		}
	}
}

// onlyRequest is the first grant of an owner, if it is the last acquire or try; none: it is not, or there is none.
func onlyRequest(v *bounds.View, l *servers.OwnerLedger) int32 {
	grant, last := refs.None, refs.None
	if l == nil {
		return refs.None
	}
	for _, op := range l.Ops {
		if s := &v.H.Spans[op.Span]; excuse.IsAcquire(s.Op) {
			if last = op.Span; s.Outcome == history.OK && grant == refs.None {
				grant = last
			}
		}
	}
	if grant != last {
		return refs.None
	}
	return grant
}

// resurrected reports whether more nodes than may be down have a hold again that was reported as lost.
func resurrected(s *servers.NodeSamples, notice, grant int32, dis excuse.Disturbances, o given.Options) (b resurrection,
	is bool) {
	n, span := &s.H.Notices[notice], &s.H.Spans[grant]
	var all []resurrection
	for node := range s.Nodes {
		before, without := refs.None, time.Duration(-1)
		for _, seen := range s.NamedIn(node, ledger.Of(span), span.Return) {
			at := seen.Place
			if before != refs.None {
				without = max(without, lastAbsent(s, node, ledger.Of(span), before, at))
			}
			before = at
			x := &s.H.Samples[s.Nodes[node][at]]
			if without >= 0 && x.Sent > n.Time &&
				!dis.MayAffect(segment.Of(without, x.Time), excuse.AnyClient, history.AffectsData) &&
				!(o.MayBeDown == 0 && s.OtherMaster(node, span.Key, x.Time, o.Slack())) {
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
func lastAbsent(s *servers.NodeSamples, node int, at ledger.OwnerKey, before, after int32) time.Duration {
	between := s.Nodes[node][before+1 : after]
	for _, i := range slices.Backward(between) {
		if is, _ := s.PresenceOf(i, at.Owner, at.Key); is == servers.Absent {
			return s.H.Samples[i].Sent
		}
	}
	return -1
}

// ResurrectedViolation describes a finding of this file.
func ResurrectedViolation(c *claims.Check, f finding.Finding) property.Violation {
	b := f.Note.(resurrection)
	n := &c.H.Notices[b.notice]
	w := finding.Involving(c.View, property.BrokenPromise, b.grant)
	w.Rule, w.Events = "a hold that was lost is not brought back", []int{int(c.H.Spans[b.grant].Ended), int(n.Index)}
	w.Text = fmt.Sprintf("the loss of %s was reported to client %d at %s, and %s, which did not have it at %s, had it "+
		"again for that owner at %s", finding.LockName(w.Key), w.Clients[0], format.Instant(n.Time), b.node,
		format.Instant(b.without), format.Instant(b.seen))
	return w
}
