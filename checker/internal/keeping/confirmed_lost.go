// Package keeping judges whether servers keep the holds that were promised, according to their samples.
package keeping

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/history"
)

// This file compares the replies to releases and renewals with the servers' record of the hold before.

// JudgeConfirmedLost finds the releases and renewals that succeeded although the only master had lost the hold before
// they were invoked: the reply must be that it is not held, whatever removed it. Only owners are judged whose
// operations have known outcomes, and which did nothing else with the lock in between.
func JudgeConfirmedLost(c *claims.Check) {
	s := c.Samples()
	if s == nil || c.O.MayBeDown > 0 {
		return
	}
	for _, l := range refs.All(s.Ledgers().All) {
		for n := 1; n < len(l.Ops); n++ {
			op, before := &s.H.Spans[l.Ops[n].Span], &s.H.Spans[l.Ops[n-1].Span]
			if op.Op != history.OpRelease && op.Op != history.OpRenew || op.Outcome != history.OK || op.Part ||
				l.Ops[n-1].Depth < 1 || !servers.Granted(before) {
				continue
			}
			if x := lostBetween(s, l.OwnerKey, before.Call, segment.Of(before.Return, op.Call), c.O); x != nil {
				c.Found.Add(finding.Finding{Rule: claims.ConfirmedLost, X: refs.None, Y: l.Ops[n].Span, Start: x.Time,
					End:  op.Return,
					Note: x.Node})
			}
		}
	}
}

// lostBetween is the first sample inside a time in which a node does not have a hold that it had in an earlier one. The
// earlier one may be from when the request for it was in flight: asked is when it was invoked.
// Samples of a semaphore name no owner: if a fault removed its key, holds that it keeps elsewhere may be in force.
func lostBetween(s *servers.NodeSamples, at ledger.OwnerKey, asked time.Duration, during segment.Segment,
	o given.Options) *history.Sample {
	changed := o.Applies(claims.HonestData) && s.AllDisturbances(o).MayAffect(during, excuse.AnyClient,
		history.AffectsData)
	for node := range s.Nodes {
		had := servers.Absent
		for i, x := range refs.At(s.H.Samples, s.Between(node, asked, during.Until)) {
			state, _ := s.PresenceOf(i, at.Owner, at.Key)
			after := x.Sent >= during.From
			if state == servers.Present || after && state != servers.Absent {
				had = state
			} else if after && had != servers.Absent && (had == servers.Present || !changed) &&
				!s.OtherMaster(node, at.Key, x.Time, o.Slack()) && !s.HeldElsewhere(node, at.Key, x.Time, o.Slack()) {
				return x
			}
		}
	}
	return nil
}
