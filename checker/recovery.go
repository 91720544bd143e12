package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of recovery.
const (
	neverAgain    = iota // nobody was granted the lock although its lease had run out
	probeFailed          // the harness could not have it at the end
	recoverNoise         // acquits: the servers were not there
	recoverPaused        // acquits: the waiter stood still
	recoverHeld          // acquits: somebody may still have held it when it was probed
)

func recoveryRules() []string {
	return []string{neverAgain: "never-again", probeFailed: "probe-failed", recoverNoise: "servers-away",
		recoverPaused: "waiter-paused", recoverHeld: "may-be-held"}
}

// checkRecovery looks for locks that did not come back by themselves. When a
// holder crashes, or stalls and never gives the lock back, the lease has to do
// it: nobody holds the key any more when the last lease that can have been in
// force has run out (see idle.go). If somebody waited from then on for longer
// than the slack while the servers were there, and nobody was granted the lock,
// it did not recover. A probe at the end of the run is such a wait in one event.
//
// It is sound up to the slack: the intervals are the largest possible. It says
// nothing of a crash after which nobody asked.
func checkRecovery(v *view, o Options) Result {
	found := newFindings(o)
	unreleased, recovered := v.notGivenBack(o)
	waits := 0
	if unreleased > 0 {
		waits = v.unservedWaits(o, acquittals{neverAgain, recoverNoise, recoverPaused}, found, afterExpiry)
	}
	probed := v.judgeProbes(o, found)
	r := found.result(Recovery, v.recoveryViolation)
	r.Counts = map[string]int64{"holds_not_released": int64(unreleased), "granted_again": int64(recovered),
		"waits_after": int64(waits), "probes": int64(probed)}
	switch {
	case r.Outcome == Violated:
	case recovered == 0 && probed == 0:
		r.Outcome = NotApplicable
		r.Summary = "no hold was left to its lease and followed by another grant, and no probe was granted"
	default:
		r.Summary = fmt.Sprintf("%s left to the lease, %d followed by another grant; %s granted at the end",
			format.Count(unreleased, "hold"), recovered, format.Count(probed, "probe"))
	}
	return r
}

// notGivenBack counts the holds that nobody released, and those of them after
// whose lease the lock was granted again: only these have shown anything.
func (v *view) notGivenBack(o Options) (unreleased, recovered int) {
	for _, holds := range v.byKey {
		for n, i := range holds {
			if v.holds[i].ending == endReleased {
				continue
			}
			unreleased++
			if n+1 < len(holds) && v.idleTimes(o.slack()).extents.leaseEnd(i) <= v.h.End {
				recovered++
			}
		}
	}
	return unreleased, recovered
}

// excuses are the rules of a property that judges sleepers: the one that
// convicts, and those that acquit.
type acquittals struct{ convict, away, paused int }

// sleepers finds the waits that were in vain although the key was free for one
// of the causes: for each gap the longest piece of a wait that nothing excuses.
// It returns how many waits met such gaps.
func (v *view) unservedWaits(o Options, e acquittals, found *findings, causes ...cause) int {
	d := v.idleTimes(o.slack())
	var away outageWindows
	if o.applies(e.away) {
		away = v.outages(o)
	}
	var still map[int][]segment
	if o.applies(e.paused) {
		still = v.clientPauses()
	}
	met := 0
	for n := 0; n < len(d.waits); {
		g := &d.gaps[d.waits[n].gap]
		best := finding{rule: e.convict, x: g.last, y: -1}
		first := d.waits[n].gap
		for ; n < len(d.waits) && d.waits[n].gap == first; n++ {
			if !slices.Contains(causes, g.cause) {
				continue
			}
			met++
			s := &v.h.Spans[d.waits[n].span]
			without := merged(away.windows, still[s.Process.Client(v.h.Clients)])
			p := longestOutside(segment{max(g.from, s.Call), min(g.until, s.Return)}, without)
			if p.until-p.from > best.end-best.start {
				best.y, best.start, best.end = d.waits[n].span, p.from, p.until
			}
		}
		if best.y >= 0 && best.end-best.start > o.slack() {
			found.add(best)
		}
	}
	return met
}

// merged is both lists in the order of time.
func merged(a, b []segment) []segment {
	if len(b) == 0 {
		return a
	}
	all := append(slices.Clone(a), b...)
	slices.SortFunc(all, func(x, y segment) int { return cmp.Compare(x.from, y.from) })
	return all
}

// judgeProbes judges the probes at the end and says how many were granted.
func (v *view) judgeProbes(o Options, found *findings) (granted int) {
	if len(v.h.Probes) == 0 {
		return 0
	}
	d, away := v.idleTimes(o.slack()), v.outages(o)
	for i := range v.h.Probes {
		p := &v.h.Probes[i]
		free := &d.free[p.Key]
		switch {
		case p.Outcome == history.OK:
			granted++
		case p.Outcome != history.Fail || free.last < 0:
		case o.applies(recoverHeld) && free.from > p.Time:
		case o.applies(recoverNoise) && !away.noneAt(p.Time):
		default:
			start := max(min(free.from, p.Time), 0)
			found.add(finding{rule: probeFailed, x: free.last, y: int32(i), start: start, end: p.Time})
		}
	}
	return granted
}

func (v *view) recoveryViolation(f finding) Violation {
	if f.rule == probeFailed {
		return v.probeViolation(f)
	}
	w := v.waitViolation(f)
	w.Rule = "a lock that its holder does not release is granted again when its lease has ended"
	x := &v.holds[f.x]
	w.Events = append([]int{v.granted(x)}, w.Events...)
	w.Text = fmt.Sprintf("client %d never released %s, and its lease had ended by %s; client %d waited for %s until %s, "+
		"and no client was granted it", v.client(x.span), lockName(w.Key), format.Instant(v.leaseOver(f)), w.Clients[len(w.Clients)-1],
		format.Duration(f.end-f.start), format.Instant(f.end))
	return w
}

// sleeperViolation is what is the same for whoever waited in vain.
func (v *view) waitViolation(f finding) Violation {
	s := &v.h.Spans[f.y]
	w := Violation{Key: v.h.Keys[s.Key], Events: []int{int(s.Invoked), int(s.Ended)}}
	w.Clients = []int{s.Process.Client(v.h.Clients)}
	w.Owners = []string{v.h.Owners[s.Owner]}
	return w
}

func (v *view) probeViolation(f finding) Violation {
	p := &v.h.Probes[f.y]
	w := Violation{Key: v.h.Keys[p.Key], Rule: "after the run, when all faults are healed, the lock can be acquired"}
	s := &v.h.Spans[v.spanOf(p.Key, f.x)]
	w.Clients, w.Owners = []int{s.Process.Client(v.h.Clients)}, []string{v.h.Owners[s.Owner]}
	w.Events = []int{int(s.Invoked), int(p.Index)}
	w.Text = fmt.Sprintf("%s could not be acquired at %s, after the run, although the last hold, by client %d, had ended by "+
		"%s", lockName(w.Key), format.Instant(p.Time), w.Clients[0], format.Instant(f.start))
	return w
}
