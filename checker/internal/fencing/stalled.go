package fencing

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// writtenStalled reports whether a touch came from a hold whose promise ended, or whose loss was reported, while its
// client or the harness was stopped, or while more servers than may be down did not reply, or at most the slack later.
// A silence that a planned fault at a server (on a quorum: at the same server) may have caused is no excuse.
func writtenStalled(v *bounds.View, touch int32, o given.Options, excuses func(excuse.Scope) excuse.Excuses) bool {
	h, dis := writerOf(v, touch), v.AllDisturbances(o)
	if h == nil || v.H.Touches[touch].Time <= h.Until {
		return false
	}
	planned := func(s *excuse.FaultTime) bool {
		return dis.Any(s.Segment, func(f *excuse.FaultTime) bool {
			at := excuse.TargetNodes(f.Target)
			return !f.Noted && f.Client() < 0 && f.Affects != history.AffectsDelays &&
				(!v.Quorum || slices.Contains(at, s.Target) || slices.Contains(at, ""))
		})
	}
	stopped := func(at segment.Segment) bool {
		return v.Stalled(h, at) || slices.ContainsFunc(v.Silences(), func(s excuse.FaultTime) bool {
			return s.From <= at.Until && at.From <= segment.Later(s.Until, o.Slack()) && !planned(&s) &&
				excuses(excuse.Scope{Key: h.Key, ReleaseOrRenewal: true}).Away.Touches(at)
		})
	}
	end, lost := h.LongestPromise(), segment.Of(h.Until, h.Until)
	if h.Until == h.From { // the loss may have come before its grant was recorded
		lost.From = max(h.Asked, h.From-o.Slack())
	}
	return stopped(segment.Of(end, end)) || v.LossReported(h) && stopped(lost)
}
