package checker

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeProbes judges the probes at the end. It returns how many were granted, and the open question about a refused
// one; "" if all could be judged.
func (v *view) judgeProbes(o Options, found *findings) (granted int, open string) {
	if len(v.h.Probes) == 0 {
		return 0, ""
	}
	d, away := v.freeTimes(), v.outages(o)
	for i, p := range refs(v.h.Probes) {
		free := &d.free[p.Key]
		undecided := func(why string) {
			if open == "" {
				open = fmt.Sprintf("%s was not acquired at %s, after the run, but %s", lockName(v.h.Keys[p.Key]),
					format.Instant(p.Time), why)
			}
		}
		switch {
		case p.Outcome == history.OK:
			granted++
		case p.Outcome != history.Fail && free.from <= p.Time: // as good as none
		case p.Outcome != history.Fail:
			undecided("the outcome of that acquire is unknown")
		case o.applies(recoverOutage) && away.touches(segment{p.Time, p.Time}):
			undecided("the servers were unavailable")
		case free.last < 0:
			undecided("no client had ever held it")
		case o.applies(recoverSoon) && free.from <= p.Time && free.cause != afterRelease &&
			p.Time <= later(free.from, o.slack()+o.ClockError):
			undecided(fmt.Sprintf("the lease of client %d had ended at most %s before", v.client(v.spanOf(p.Key, free.last)),
				format.Duration(p.Time-free.from)))
		case o.states(promise.Fair) && o.applies(recoverQueued) && v.mayQueue(p.Key, p.Time, o):
			undecided("a waiter that a fault kept from leaving may still be in the queue")
		case !o.applies(recoverHeld) || free.from <= p.Time:
			found.add(finding{rule: probeFailed, x: free.last, y: i, start: max(min(free.from, p.Time), 0), end: p.Time})
		default:
			lost, never := v.neverFreed(p.Key, p.Time, o.slack())
			if !never {
				undecided(fmt.Sprintf("client %d may still have held it", v.client(v.spanOf(p.Key, free.last))))
				continue
			}
			found.add(finding{rule: neverFree, x: free.last, y: i, start: lost, end: p.Time})
		}
	}
	return granted, open
}

// mayQueue reports whether a waiter that has failed or died may still be in the queue of a key at t.
func (v *view) mayQueue(key int32, t time.Duration, o Options) bool {
	e, dis := v.freeTimes().extents, v.disturbances(o)
	for i := range v.h.Spans {
		if i := int32(i); v.h.Spans[i].Key == key && v.mayLinger(i, dis) && e.dequeued(i) > t {
			return true
		}
	}
	return false
}

// neverFreed reports whether everything that can hold a key at t was lost more than slack before, without a lease that
// ends it: by a crash, a reported loss, or a refused release or renewal. lost is when the latest of these was lost. A
// lease that no client stated may be seen at the servers. A release that failed with an error which is no answer of the
// lock, or ended with an unknown outcome, may have had no effect: its owner has not certainly lost the lock.
func (v *view) neverFreed(key int32, t, slack time.Duration) (lost time.Duration, never bool) {
	e := v.freeTimes().extents
	lose := func(at, end time.Duration) (unexplained bool) {
		lost = max(lost, at)
		return end == history.Infinity && later(at, slack) <= t
	}
	for i, h := range refsAt(v.holds, v.byKey[key]) {
		end := e.freeAt(i)
		if end > t && (h.ending != endLost || v.releaseFailed(h) || !lose(h.until, end)) {
			return 0, false
		}
	}
	for _, x := range e.possible[key] {
		if x.until <= t {
			continue
		}
		if x.cause != afterUnknownAcquire {
			return 0, false
		}
		s := &v.h.Spans[x.last]
		at, exited := e.crashed[s.Process.Client(v.h.Clients)]
		if !exited || at < s.Call || !lose(at, x.until) {
			return 0, false
		}
	}
	return lost, !v.leasedBeyond(key, t)
}

// releaseFailed reports whether a release of a hold got no answer of the lock, and so may have had no effect.
func (v *view) releaseFailed(h *hold) bool {
	return slices.ContainsFunc(v.h.Failures, func(f history.Failure) bool {
		s := &v.h.Spans[f.Span]
		return s.Op == history.OpRelease && (s.Invoked == h.endEvent && s.Outcome == history.Fail ||
			s.Outcome == history.Info && s.Owner == h.owner && s.Key == h.key)
	})
}

// leasedBeyond reports whether a master, as last seen before t, keeps a key with a lease that ends after t.
func (v *view) leasedBeyond(key int32, t time.Duration) bool {
	s := v.samples()
	if s == nil {
		return false
	}
	for node := range s.nodes {
		seen := s.between(node, 0, t)
		if len(seen) == 0 {
			continue
		}
		last := seen[len(seen)-1]
		if k, held := s.valueAt(last, key); held && k.rest >= 0 && later(s.h.Samples[last].Time, k.rest) > t {
			return true
		}
	}
	return false
}

// crashes is, by client, when it last crashed.
func (v *view) crashes() map[int]time.Duration {
	crashed := make(map[int]time.Duration)
	for _, n := range refs(v.h.Notices) {
		if n.F == history.Crash {
			crashed[n.Process.Client(v.h.Clients)] = n.Time
		}
	}
	return crashed
}

// unprobed finds a key without a probe that may never be free again: all that can hold it was lost, and no lease ends
// it. A client has waited for it in vain since then, or its last holder crashed, and nobody was granted it after that.
// Whether it would have been granted later is unknown. "": none.
func (v *view) unprobed(o Options) string {
	d, probed := v.freeTimes(), make(map[int32]bool)
	for i := range v.h.Probes {
		probed[v.h.Probes[i].Key] = true
	}
	if text := v.waitForLostKey(d, probed, o); text != "" {
		return text
	}
	for key, holds := range v.byKey {
		if key := int32(key); len(holds) > 0 && !probed[key] && d.free[key].from == never {
			if text := v.crashedLast(key, holds, o); text != "" {
				return text
			}
		}
	}
	return ""
}

// crashedLast says that the client of the last hold of a key crashed, that no lease ends the hold, and that nothing
// shows whether the lock is free; "": not so. A crash less than the slack before the end is none that a lock had to
// recover from.
func (v *view) crashedLast(key int32, holds []int32, o Options) string {
	h := &v.holds[holds[len(holds)-1]]
	if v.endOf(h) != Crashed {
		return ""
	}
	if _, is := v.neverFreed(key, v.h.End, o.slack()); !is {
		return ""
	}
	return fmt.Sprintf("client %d crashed at %s, while it held %s, and no lease ends its hold; no later acquire and no "+
		"probe shows whether the lock can be acquired", v.client(h.span), format.Instant(h.until), lockName(v.h.Keys[key]))
}

// waitForLostKey finds a wait for a key without a probe after all that can hold it was lost; "": there is none.
func (v *view) waitForLostKey(d *freeTimes, probed map[int32]bool, o Options) string {
	away := v.outages(o)
	for _, s := range refsAt(v.h.Spans, v.h.TimedOut) {
		if limit := v.h.Limit(s.Key); probed[s.Key] || d.free[s.Key].from < never || limit > 0 && s.Permits > limit {
			continue
		}
		lost, is := v.neverFreed(s.Key, s.Return, o.slack())
		client := s.Process.Client(v.h.Clients)
		p := longestOutside(segment{max(lost, s.Call), s.Return}, away.windows, v.clientPauses()[client])
		if !is || p.until-p.from <= o.slack() {
			continue
		}
		last := v.client(v.spanOf(s.Key, d.free[s.Key].last))
		return fmt.Sprintf("client %d lost %s at %s without releasing it, and no lease ends its hold; client %d waited for "+
			"%s until %s, and no probe shows whether the lock can be acquired", last, lockName(v.h.Keys[s.Key]),
			format.Instant(lost), client, format.Duration(p.until-p.from), format.Instant(p.until))
	}
	return ""
}

// unrecovered finds a hold that was left to its lease, and a client that asked for the lock for longer than the slack
// after the end of that lease, with an outcome that shows nothing. "": there is none.
func (v *view) unrecovered(o Options) string {
	ended := v.leasesEnded()
	asked := func(span int32, until time.Duration) string {
		s := &v.h.Spans[span]
		if limit := v.h.Limit(s.Key); s.Op != history.OpAcquire || limit > 0 && s.Permits > limit ||
			until-s.Call <= o.slack() {
			return ""
		}
		end, is := ended(s.Key).before(until - o.slack())
		if !is {
			return ""
		}
		return fmt.Sprintf("%s, and its lease had ended by %s; client %d asked for it until %s, but an outage, a pause or "+
			"its unknown outcome leaves open whether it could be granted", v.unreleased(&v.holds[end.hold]),
			format.Instant(end.at), s.Process.Client(v.h.Clients), format.Instant(until))
	}
	for _, i := range v.h.TimedOut {
		if text := asked(i, v.h.Spans[i].Return); text != "" {
			return text
		}
	}
	for _, u := range v.h.Unknown {
		if text := asked(u.Span, u.Time); text != "" {
			return text
		}
	}
	return ""
}

// leaseEnds are the ends of the leases of unreleased holds of a key, in the order of the grants: only those before the
// ends of the leases of all earlier holds.
type leaseEnds []leaseEnd

type leaseEnd struct {
	at   time.Duration
	hold int32
}

// leasesEnded returns a function that finds the ends of leases of a key. It computes them once for each key.
func (v *view) leasesEnded() func(key int32) leaseEnds {
	e, known := v.freeTimes().extents, make(map[int32]leaseEnds)
	return func(key int32) leaseEnds {
		ends, is := known[key]
		if is {
			return ends
		}
		for i, h := range refsAt(v.holds, v.byKey[key]) {
			if h.ending == endReleased {
				continue
			}
			if at := e.leaseEnd(i); len(ends) == 0 || at < ends[len(ends)-1].at {
				ends = append(ends, leaseEnd{at, i})
			}
		}
		known[key] = ends
		return ends
	}
}

// before is the first hold of which the lease ended before t, and whether there is one.
func (l leaseEnds) before(t time.Duration) (leaseEnd, bool) {
	n := sort.Search(len(l), func(n int) bool { return l[n].at < t })
	if n == len(l) {
		return leaseEnd{}, false
	}
	return l[n], true
}

func (v *view) probeViolation(f finding) Violation {
	p := &v.h.Probes[f.y]
	last := v.spanOf(p.Key, f.x)
	w := v.involving("", last)
	w.Rule = "after the run, when all faults are healed, the lock can be acquired"
	w.Events = []int{int(v.h.Spans[last].Invoked), int(p.Index)}
	w.Text = fmt.Sprintf("%s could not be acquired at %s, after the run", lockName(w.Key), format.Instant(p.Time))
	if f.rule == neverFree {
		w.Text += fmt.Sprintf(": client %d lost it at %s without releasing it, and no lease ends its hold", w.Clients[0],
			format.Instant(f.start))
		return w
	}
	w.Text += v.hadEnded(last, f.start)
	return w
}
