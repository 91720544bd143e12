package wakeup

import (
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeUnanswered finds the operations that ended without a known outcome after longer than the slack, although the
// servers that decide about the key were available: the key's own server, at a lock that states that other servers do
// not matter ([promise.PerServerFailures]), or a majority of a quorum (Options.MayBeDown).
func judgeUnanswered(v *bounds.View, o given.Options, found *finding.Findings) {
	var decided func(s *history.Span, client int, during segment.Segment) bool
	switch {
	case o.Isolation() > 0:
		decided = availableElsewhere(v, o)
	case o.MayBeDown > 0 && o.States(promise.RetriesTransientErrors):
		decided = availableMajority(v, o)
	default:
		return
	}
	ran := running(v, 0)
	for _, u := range v.H.Unknown {
		s, client := &v.H.Spans[u.Span], v.Client(u.Span)
		during := segment.Of(s.Call, u.Time)
		if !excuse.IsLockOp(s) && s.Op != history.OpRenew || s.Part || during.Until-during.From <= o.Slack() ||
			!ran(client, during) || !decided(s, client, during) {
			continue
		}
		found.Add(finding.Finding{Rule: unanswered, X: refs.None, Y: u.Span, Start: during.From, End: during.Until})
	}
}

// running returns a function that reports whether a client did not crash after the beginning of an operation, and was
// not paused during it or within grace before it.
func running(v *bounds.View, grace time.Duration) func(client int, during segment.Segment) bool {
	crashed := v.Crashes()
	return func(client int, during segment.Segment) bool {
		at, is := crashed[client]
		return !(is && at >= during.From) && !slices.ContainsFunc(v.ClientPauses()[client], func(p segment.Segment) bool {
			return p.From <= during.Until && during.From <= segment.Later(p.Until, grace)
		})
	}
}

// availableElsewhere returns a function that reports whether the server of an operation was available, and another one
// was not.
func availableElsewhere(v *bounds.View, o given.Options) func(s *history.Span, client int,
	during segment.Segment) bool {
	excuses, elsewhere := v.ExcusesFor(o), v.Outages(o)
	return func(s *history.Span, client int, during segment.Segment) bool {
		e := excuses(excuse.ScopeOf(s))
		return elsewhere.Touches(during) && !e.Away.Touches(during) && !e.Dis.MayAffect(during, client,
			history.AffectsData, history.AffectsTraffic, history.AffectsDelays, history.AffectsCommands, history.AffectsClients)
	}
}

// availableMajority returns a function that reports whether a release or a renewal has a majority of servers that know
// the hold and say so: until it ended there was no fault but kills of a few servers, which were down before the hold
// was requested and still are. Its votes then came from the others, and are as many as a majority. A delay that is
// short costs no vote. A forced release at the same time may be done at some of them only.
func availableMajority(v *bounds.View, o given.Options) func(s *history.Span, client int, during segment.Segment) bool {
	kills, others := killsAlone(v)
	return func(s *history.Span, _ int, during segment.Segment) bool {
		if s.Op != history.OpRelease && s.Op != history.OpRenew || others <= during.Until {
			return false
		}
		down, last := 0, time.Duration(-1)
		for _, k := range kills {
			if k.From <= during.Until {
				down, last = down+1, max(last, k.Until)
			}
		}
		long := promisedLonger(v, s, last, segment.Later(s.Call, o.Slack()))
		return down <= o.MayBeDown && long && !v.HasRare(func(x *history.Span) bool {
			return x.Op == history.OpForceRelease && x.Key == s.Key && x.Call <= during.Until && x.Return >= s.Call
		})
	}
}

// promisedLonger reports whether the owner of s had a hold that it requested after an instant, and that was promised
// beyond another one.
func promisedLonger(v *bounds.View, s *history.Span, after, until time.Duration) bool {
	for _, h := range v.ByOwner().Begun(s.Owner, s.Key, s.Call) {
		if h.Asked > after && h.LastPromise() > until {
			return true
		}
	}
	return false
}

// killsAlone says by server when it was killed, from the request to its effect, and when the first other fault began or
// the first kill ended; never: there is none.
func killsAlone(v *bounds.View) (kills map[string]segment.Segment, others time.Duration) {
	kills, others = make(map[string]segment.Segment), segment.Never
	for _, f := range refs.All(v.H.Faults) {
		killed := f.Class == history.FaultKills && !strings.HasPrefix(f.Target, excuse.ClientTarget)
		switch _, down := kills[f.Target]; {
		case killed && f.Phase == history.Injected:
			for _, node := range excuse.TargetNodes(f.Target) {
				kills[node] = segment.Of(f.Time, segment.Never)
			}
		case killed && f.Phase == history.TookEffect:
			for _, node := range excuse.TargetNodes(f.Target) {
				kills[node] = segment.Of(kills[node].From, f.Time)
			}
		case f.Phase == history.Noted && !(f.Name == history.NodeSilent && down),
			f.Phase == history.Injected && f.Affects != history.AffectsDelays, killed && f.Phase == history.Healed:
			others = min(others, f.Time-f.Lasted)
		}
	}
	return kills, others
}

// judgeUnknownOutcomes finds the acquires and tries of a quorum whose outcome stayed unknown although no more servers
// than may be down were unavailable from their invocation on: the others can report their data, and a claim that a
// majority has not, or has given back, is no hold.
func judgeUnknownOutcomes(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.Settles() || !v.Quorum {
		return
	}
	excuses, ran := v.ExcusesFor(o), running(v, o.Slack())
	for _, u := range v.H.Unknown {
		s := &v.H.Spans[u.Span]
		during := segment.Of(s.Call, u.Time)
		idle := segment.Of(v.LastUse(u.Span), u.Time) // connections may have broken meanwhile
		if !excuse.IsAcquire(s.Op) || s.Part || v.WasClosed(u.Span) || u.Timeout || u.Abandoned ||
			!ran(v.Client(u.Span), during) || excuses(excuse.ScopeOf(s)).Away.Touches(idle) {
			continue
		}
		found.Add(finding.Finding{Rule: outcomeUnknown, X: refs.None, Y: u.Span, Start: during.From, End: during.Until})
	}
}
