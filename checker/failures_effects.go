package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeEffectsOfFailures finds the releases that ended with an error and with certainty had no effect, but after which
// another owner was granted the lock before the promise to the releaser had ended: they did have an effect. A fault
// since the grant that may have changed the data of servers excuses the lock, as does a forced release.
func (c *honestyCheck) judgeEffectsOfFailures() {
	for _, f := range c.h.Failures {
		s := &c.h.Spans[f.Span]
		if s.Op != history.OpRelease || s.Outcome != history.Fail || s.Held || c.h.Limit(s.Key) != 0 {
			continue
		}
		n, held := c.lastHold(s.Owner, s.Key, s.Call)
		if !held {
			continue
		}
		h := &c.holds[n]
		if h.endEvent != s.Invoked && h.endEvent != s.Ended || len(c.levelsLeft(h)) != 1 {
			continue
		}
		other := c.grantedWithin(h, segment{s.Call, h.lastPromise() - c.o.ClockError})
		if other == none {
			continue
		}
		during := segment{h.asked, c.holds[other].from}
		if !c.touched(c.dis, during) && !c.releasedIn(s, during) {
			c.found.add(finding{rule: failedWithEffect, x: other, y: f.Span, start: s.Call, end: c.holds[other].from})
		}
	}
}

// grantedWithin is the first hold of another owner that excludes h and was granted in s; none if there is none.
func (v *view) grantedWithin(h *hold, s segment) int32 {
	for i, g := range refsAt(v.holds, v.grantedAfter(h.key, s.from)) {
		switch {
		case g.from >= s.until:
			return none
		case g.owner != h.owner && !(g.reader && h.reader):
			return i
		}
	}
	return none
}

// releasedIn reports whether another release than failed, by its owner or by force, may have taken effect in s.
func (v *view) releasedIn(failed *history.Span, s segment) bool {
	for _, x := range v.inFlight(s) {
		own := x.Op == history.OpRelease && x.Owner == failed.Owner && x != failed
		if x.Key == failed.Key && (own || x.Op == history.OpForceRelease) && x.Outcome != history.Fail {
			return true
		}
	}
	return false
}

// failedWithEffectViolation describes a finding of judgeEffectsOfFailures.
func (v *view) failedWithEffectViolation(f finding) Violation {
	s, g := &v.h.Spans[f.y], &v.holds[f.x]
	w := v.involving("", f.y, g.span)
	w.Rule = "an operation that fails with certainty has no effect"
	w.Events = []int{int(s.Invoked), int(s.Ended), v.granted(g)}
	w.Text = fmt.Sprintf("the release of %s by client %d at %s ended with an error that says that it was not done, but "+
		"client %d was granted the lock at %s, before the promise to client %d had ended", lockName(w.Key), w.Clients[0],
		format.Instant(s.Call), w.Clients[1], format.Instant(g.from), w.Clients[0])
	return w
}

// judgeUnanswered finds the operations that ended without a known outcome after longer than the slack, although the
// servers that decide about the key were available: the key's own server, at a lock that states that other servers do
// not matter ([promise.PerServerFailures]), or a majority of a quorum (Options.MayBeDown).
func (v *view) judgeUnanswered(o Options, found *findings) {
	var decided func(s *history.Span, client int, during segment) bool
	switch {
	case o.isolation() > 0:
		decided = v.availableElsewhere(o)
	case o.MayBeDown > 0 && o.states(promise.RetriesTransientErrors):
		decided = v.availableMajority(o)
	default:
		return
	}
	ran := v.running(0)
	for _, u := range v.h.Unknown {
		s, client := &v.h.Spans[u.Span], v.client(u.Span)
		during := segment{s.Call, u.Time}
		if !isLockOp(s) && s.Op != history.OpRenew || s.Part || during.until-during.from <= o.slack() ||
			!ran(client, during) || !decided(s, client, during) {
			continue
		}
		found.add(finding{rule: unanswered, x: none, y: u.Span, start: during.from, end: during.until})
	}
}

// running returns a function that reports whether a client did not crash after the beginning of an operation, and was
// not paused during it or within grace before it.
func (v *view) running(grace time.Duration) func(client int, during segment) bool {
	crashed := v.crashes()
	return func(client int, during segment) bool {
		at, is := crashed[client]
		return !(is && at >= during.from) && !slices.ContainsFunc(v.clientPauses()[client], func(p segment) bool {
			return p.from <= during.until && during.from <= later(p.until, grace)
		})
	}
}

// availableElsewhere returns a function that reports whether the server of an operation was available, and another one
// was not.
func (v *view) availableElsewhere(o Options) func(s *history.Span, client int, during segment) bool {
	excuses, elsewhere := v.excusesFor(o), v.outages(o)
	return func(s *history.Span, client int, during segment) bool {
		e := excuses(scopeOf(s))
		return elsewhere.touches(during) && !e.away.touches(during) && !e.dis.mayAffect(during, client,
			history.AffectsData, history.AffectsTraffic, history.AffectsDelays, history.AffectsCommands, history.AffectsClients)
	}
}

// availableMajority returns a function that reports whether a release or a renewal has a majority of servers that know
// the hold and say so: until it ended there was no fault but kills of a few servers, which were down before the hold
// was requested and still are. Its votes then came from the others, and are as many as a majority. A delay that is
// short costs no vote. A forced release at the same time may be done at some of them only.
func (v *view) availableMajority(o Options) func(s *history.Span, client int, during segment) bool {
	kills, others := v.killsAlone()
	return func(s *history.Span, _ int, during segment) bool {
		if s.Op != history.OpRelease && s.Op != history.OpRenew || others <= during.until {
			return false
		}
		down, last := 0, time.Duration(-1)
		for _, k := range kills {
			if k.from <= during.until {
				down, last = down+1, max(last, k.until)
			}
		}
		long := v.promisedLonger(s, last, later(s.Call, o.slack()))
		return down <= o.MayBeDown && long && !v.hasRare(func(x *history.Span) bool {
			return x.Op == history.OpForceRelease && x.Key == s.Key && x.Call <= during.until && x.Return >= s.Call
		})
	}
}

// promisedLonger reports whether the owner of s had a hold that it requested after an instant, and that was promised
// beyond another one.
func (v *view) promisedLonger(s *history.Span, after, until time.Duration) bool {
	for _, h := range v.byOwner().begun(s.Owner, s.Key, s.Call) {
		if h.asked > after && h.lastPromise() > until {
			return true
		}
	}
	return false
}

// killsAlone says by server when it was killed, from the request to its effect, and when the first other fault began or
// the first kill ended; never: there is none.
func (v *view) killsAlone() (kills map[string]segment, others time.Duration) {
	kills, others = make(map[string]segment), never
	for _, f := range refs(v.h.Faults) {
		killed := f.Class == history.FaultKills && !strings.HasPrefix(f.Target, clientTarget)
		switch _, down := kills[f.Target]; {
		case killed && f.Phase == history.Injected:
			for _, node := range targetNodes(f.Target) {
				kills[node] = segment{f.Time, never}
			}
		case killed && f.Phase == history.TookEffect:
			for _, node := range targetNodes(f.Target) {
				kills[node] = segment{kills[node].from, f.Time}
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
func (v *view) judgeUnknownOutcomes(o Options, found *findings) {
	if !o.settles() || !v.quorum {
		return
	}
	excuses, ran := v.excusesFor(o), v.running(o.slack())
	for _, u := range v.h.Unknown {
		s := &v.h.Spans[u.Span]
		during := segment{s.Call, u.Time}
		idle := segment{v.lastUse(u.Span), u.Time} // connections may have broken meanwhile
		if !isAcquire(s.Op) || s.Part || v.wasClosed(u.Span) || u.Timeout || u.Abandoned ||
			!ran(v.client(u.Span), during) || excuses(scopeOf(s)).away.touches(idle) {
			continue
		}
		found.add(finding{rule: outcomeUnknown, x: none, y: u.Span, start: during.from, end: during.until})
	}
}

// lastUse is when the client of a span had sent the request before it: 0 if there was none.
func (v *view) lastUse(span int32) time.Duration { return v.usedBefore(span, 1) }

// usedBefore is when the client of a span had sent the n-th request before it: 0 if there were fewer.
func (v *view) usedBefore(span int32, n int) time.Duration {
	client := v.client(span)
	for i := span - 1; i >= 0; i-- {
		if v.client(i) == client {
			if n--; n == 0 {
				return v.h.Spans[i].Call
			}
		}
	}
	return 0
}
