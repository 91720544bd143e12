package recovery

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeProbes judges the probes at the end. It returns how many were granted, and the open question about a refused
// one; "" if all could be judged.
func judgeProbes(v *bounds.View, o given.Options, found *finding.Findings) (granted int, open string) {
	if len(v.H.Probes) == 0 {
		return 0, ""
	}
	d, away := v.FreeTimes(), v.Outages(o)
	for i, p := range refs.All(v.H.Probes) {
		free := &d.Free[p.Key]
		undecided := func(why string) {
			if open == "" {
				open = fmt.Sprintf("%s was not acquired at %s, after the run, but %s", finding.LockName(v.H.Keys[p.Key]),
					format.Instant(p.Time), why)
			}
		}
		switch {
		case p.Outcome == history.OK:
			granted++
		case p.Outcome != history.Fail && free.From <= p.Time: // as good as none
		case p.Outcome != history.Fail:
			undecided("the outcome of that acquire is unknown")
		case o.Applies(recoverOutage) && away.Touches(segment.Of(p.Time, p.Time)):
			undecided("the servers were unavailable")
		case free.Last < 0:
			undecided("no client had ever held it")
		case o.Applies(recoverSoon) && free.From <= p.Time && free.Cause != bounds.AfterRelease &&
			p.Time <= segment.Later(free.From, o.Slack()+o.ClockError):
			undecided(fmt.Sprintf("the lease of client %d had ended at most %s before", v.Client(v.SpanOf(p.Key, free.Last)),
				format.Duration(p.Time-free.From)))
		case o.States(promise.Fair) && o.Applies(recoverQueued) && mayQueue(v, p.Key, p.Time, o):
			undecided("a waiter that a fault kept from leaving may still be in the queue")
		case !o.Applies(recoverHeld) || free.From <= p.Time:
			found.Add(finding.Finding{Rule: probeFailed, X: free.Last, Y: i, Start: max(min(free.From, p.Time), 0), End: p.Time})
		default:
			lost, never := neverFreed(v, p.Key, p.Time, o.Slack())
			if !never {
				undecided(fmt.Sprintf("client %d may still have held it", v.Client(v.SpanOf(p.Key, free.Last))))
				continue
			}
			found.Add(finding.Finding{Rule: neverFree, X: free.Last, Y: i, Start: lost, End: p.Time})
		}
	}
	return granted, open
}

// mayQueue reports whether a waiter that has failed or died may still be in the queue of a key at t.
func mayQueue(v *bounds.View, key int32, t time.Duration, o given.Options) bool {
	e, dis := v.FreeTimes().Extents, v.Disturbances(o)
	for i := range v.H.Spans {
		if i := int32(i); v.H.Spans[i].Key == key && v.MayLinger(i, dis) && e.Dequeued(i) > t {
			return true
		}
	}
	return false
}

// neverFreed reports whether everything that can hold a key at t was lost more than slack before, without a lease that
// ends it: by a crash, a reported loss, or a refused release or renewal. lost is when the latest of these was lost. A
// lease that no client stated may be seen at the servers. A release that failed with an error which is no answer of the
// lock, or ended with an unknown outcome, may have had no effect: its owner has not certainly lost the lock.
func neverFreed(v *bounds.View, key int32, t, slack time.Duration) (lost time.Duration, never bool) {
	e := v.FreeTimes().Extents
	lose := func(at, end time.Duration) (unexplained bool) {
		lost = max(lost, at)
		return end == history.Infinity && segment.Later(at, slack) <= t
	}
	for i, h := range refs.At(v.Holds, v.ByKey[key]) {
		end := e.FreeAt(i)
		if end > t && (h.Ending != ledger.EndLost || releaseFailed(v, h) || !lose(h.Until, end)) {
			return 0, false
		}
	}
	for _, x := range e.Possible[key] {
		if x.Until <= t {
			continue
		}
		if x.Cause != bounds.AfterUnknownAcquire {
			return 0, false
		}
		s := &v.H.Spans[x.Last]
		at, exited := e.Crashed[s.Process.Client(v.H.Clients)]
		if !exited || at < s.Call || !lose(at, x.Until) {
			return 0, false
		}
	}
	return lost, !leasedBeyond(v, key, t)
}

// releaseFailed reports whether a release of a hold got no answer of the lock, and so may have had no effect.
func releaseFailed(v *bounds.View, h *ledger.Hold) bool {
	return slices.ContainsFunc(v.H.Failures, func(f history.Failure) bool {
		s := &v.H.Spans[f.Span]
		return s.Op == history.OpRelease && (s.Invoked == h.EndEvent && s.Outcome == history.Fail ||
			s.Outcome == history.Info && s.Owner == h.Owner && s.Key == h.Key)
	})
}

// leasedBeyond reports whether a master, as last seen before t, keeps a key with a lease that ends after t.
func leasedBeyond(v *bounds.View, key int32, t time.Duration) bool {
	s := v.Samples()
	if s == nil {
		return false
	}
	for node := range s.Nodes {
		seen := s.Between(node, 0, t)
		if len(seen) == 0 {
			continue
		}
		last := seen[len(seen)-1]
		if k, held := s.ValueAt(last, key); held && k.Rest >= 0 && segment.Later(s.H.Samples[last].Time, k.Rest) > t {
			return true
		}
	}
	return false
}

// unprobed finds a key without a probe that may never be free again: all that can hold it was lost, and no lease ends
// it. A client has waited for it in vain since then, or its last holder crashed, and nobody was granted it after that.
// Whether it would have been granted later is unknown. "": none.
func unprobed(v *bounds.View, o given.Options) string {
	d, probed := v.FreeTimes(), make(map[int32]bool)
	for i := range v.H.Probes {
		probed[v.H.Probes[i].Key] = true
	}
	if text := waitForLostKey(v, d, probed, o); text != "" {
		return text
	}
	for key, holds := range v.ByKey {
		if key := int32(key); len(holds) > 0 && !probed[key] && d.Free[key].From == segment.Never {
			if text := crashedLast(v, key, holds, o); text != "" {
				return text
			}
		}
	}
	return ""
}

// crashedLast says that the client of the last hold of a key crashed, that no lease ends the hold, and that nothing
// shows whether the lock is free; "": not so. A crash less than the slack before the end is none that a lock had to
// recover from.
func crashedLast(v *bounds.View, key int32, holds []int32, o given.Options) string {
	h := &v.Holds[holds[len(holds)-1]]
	if v.EndOf(h) != property.Crashed {
		return ""
	}
	if _, is := neverFreed(v, key, v.H.End, o.Slack()); !is {
		return ""
	}
	return fmt.Sprintf("client %d crashed at %s, while it held %s, and no lease ends its hold; no later acquire and no "+
		"probe shows whether the lock can be acquired", v.Client(h.Span), format.Instant(h.Until),
		finding.LockName(v.H.Keys[key]))
}

// waitForLostKey finds a wait for a key without a probe after all that can hold it was lost; "": there is none.
func waitForLostKey(v *bounds.View, d *bounds.FreeTimes, probed map[int32]bool, o given.Options) string {
	away := v.Outages(o)
	for _, s := range refs.At(v.H.Spans, v.H.TimedOut) {
		if limit := v.H.Limit(s.Key); probed[s.Key] || d.Free[s.Key].From < segment.Never || limit > 0 && s.Permits > limit {
			continue
		}
		lost, is := neverFreed(v, s.Key, s.Return, o.Slack())
		client := s.Process.Client(v.H.Clients)
		p := segment.LongestOutside(segment.Of(max(lost, s.Call), s.Return), away.Windows, v.ClientPauses()[client])
		if !is || p.Until-p.From <= o.Slack() {
			continue
		}
		last := v.Client(v.SpanOf(s.Key, d.Free[s.Key].Last))
		return fmt.Sprintf("client %d lost %s at %s without releasing it, and no lease ends its hold; client %d waited for "+
			"%s until %s, and no probe shows whether the lock can be acquired", last, finding.LockName(v.H.Keys[s.Key]),
			format.Instant(lost), client, format.Duration(p.Until-p.From), format.Instant(p.Until))
	}
	return ""
}

// unrecovered finds a hold that was left to its lease, and a client that asked for the lock for longer than the slack
// after the end of that lease, with an outcome that shows nothing. "": there is none.
func unrecovered(v *bounds.View, o given.Options) string {
	ended := leasesEnded(v)
	asked := func(span int32, until time.Duration) string {
		s := &v.H.Spans[span]
		if limit := v.H.Limit(s.Key); s.Op != history.OpAcquire || limit > 0 && s.Permits > limit ||
			until-s.Call <= o.Slack() {
			return ""
		}
		end, is := ended(s.Key).before(until - o.Slack())
		if !is {
			return ""
		}
		return fmt.Sprintf("%s, and its lease had ended by %s; client %d asked for it until %s, but an outage, a pause or "+
			"its unknown outcome leaves open whether it could be granted", unreleased(v, &v.Holds[end.hold]),
			format.Instant(end.at), s.Process.Client(v.H.Clients), format.Instant(until))
	}
	for _, i := range v.H.TimedOut {
		if text := asked(i, v.H.Spans[i].Return); text != "" {
			return text
		}
	}
	for _, u := range v.H.Unknown {
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
func leasesEnded(v *bounds.View) func(key int32) leaseEnds {
	e, known := v.FreeTimes().Extents, make(map[int32]leaseEnds)
	return func(key int32) leaseEnds {
		ends, is := known[key]
		if is {
			return ends
		}
		for i, h := range refs.At(v.Holds, v.ByKey[key]) {
			if h.Ending == ledger.EndReleased {
				continue
			}
			if at := e.LeaseEnd(i); len(ends) == 0 || at < ends[len(ends)-1].at {
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

func probeViolation(v *bounds.View, f finding.Finding) property.Violation {
	p := &v.H.Probes[f.Y]
	last := v.SpanOf(p.Key, f.X)
	w := finding.Involving(v, "", last)
	w.Rule = "after the run, when all faults are healed, the lock can be acquired"
	w.Events = []int{int(v.H.Spans[last].Invoked), int(p.Index)}
	w.Text = fmt.Sprintf("%s could not be acquired at %s, after the run", finding.LockName(w.Key), format.Instant(p.Time))
	if f.Rule == neverFree {
		w.Text += fmt.Sprintf(": client %d lost it at %s without releasing it, and no lease ends its hold", w.Clients[0],
			format.Instant(f.Start))
		return w
	}
	w.Text += waiting.HadEnded(v, last, f.Start)
	return w
}
