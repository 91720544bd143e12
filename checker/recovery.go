package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of recovery.
const (
	notGrantedAgain = iota // the lock was not granted although its lease had ended
	probeFailed            // the harness could not acquire it at the end
	neverFree              // the same, and no lease ends the hold of an owner that lost it, such as by a crash
	keptBeyond             // a server keeps a hold for longer than its lease
	renewedBeyond          // the lock renewed a hold by itself for longer than it may
	recoverOutage          // acquits: the servers were unavailable
	recoverPaused          // acquits: the waiter was paused
	recoverHeld            // acquits: the lock may still have been held at the probe
	recoverSoon            // acquits: a lease had ended within the slack before the probe
	recoverQueued          // acquits: a waiter that a fault kept from leaving may be in the queue of a fair lock
	recoverUnleased        // leaves open: no lease returns the permits of a client that died
	recoverSteps           // acquits: while a slot migrates, each of many requests may be slow
)

func recoveryRules() []string {
	return []string{notGrantedAgain: "not-granted-again", probeFailed: "probe-failed", neverFree: "never-free",
		keptBeyond: "kept-beyond-lease", renewedBeyond: "renewed-beyond-limit",
		recoverOutage: "outage", recoverPaused: "waiter-paused", recoverHeld: "may-be-held",
		recoverSoon: "just-ended", recoverQueued: "may-be-queued",
		recoverUnleased: "permits-of-dead", recoverSteps: "slow-requests"}
}

// checkRecovery looks for locks that did not recover by themselves. If a holder crashes, or hangs and never releases,
// the lease has to end the hold: the key is free when the last lease that can have been in force has ended (see
// free_times.go). If a client waited after that for longer than the slack, while the servers were available, and no
// client was granted the lock, it did not recover. A probe at the end of the run is such a wait in one event.
//
// A lock without a lease has no end of a lease to count from. But the harness probes when the clients are done and
// nothing at the servers has a time to live: if all that can hold the lock then was lost more than the slack before,
// and the probe is refused, nothing will ever free it. A refused probe that cannot be judged leaves the property
// undecided.
//
// It is sound up to the slack: the intervals are the longest possible ones. It says nothing about a crash after which
// no client requested the lock.
func checkRecovery(v *view, o Options) Result {
	found := newFindings(o)
	unreleased, recovered := v.countUnreleased()
	waits := 0
	if unreleased > 0 {
		timed, rules := o.withoutSlowMigration(recoverSteps), waitRules{notGrantedAgain, recoverOutage, recoverPaused}
		waits = v.unservedWaits(timed, rules, found, afterExpiry)
	}
	probed, open := v.judgeProbes(o, found)
	if open == "" {
		open = v.unprobed(o)
	}
	if open == "" && o.applies(recoverUnleased) {
		open = v.permitsOfDead(o)
	}
	if open == "" && recovered == 0 && probed == 0 {
		open = v.unrecovered(o)
	}
	v.addWrongHolds(heldTooLongForLease, keptBeyond, found)
	limited := v.judgeLimits(o, found)
	r := found.result(Recovery, v.recoveryViolation)
	r.Counts = map[string]int64{"holds_not_released": int64(unreleased), "granted_again": int64(recovered),
		"waits_after": int64(waits), "probes": int64(probed)}
	if limited > 0 {
		r.Counts["limited"] = int64(limited)
	}
	switch {
	case r.Outcome == Violated:
	case open != "":
		r.Outcome, r.Summary = Undecided, open
	case recovered == 0 && probed == 0:
		r.Outcome, r.Summary = NotApplicable, nothingToRecover
	default:
		r.Summary = fmt.Sprintf("%s not released, %d followed by another grant; the lock was granted to %s at the end",
			format.Count(unreleased, "hold"), recovered, format.Count(probed, "probe"))
	}
	return r
}

// countUnreleased counts the holds that were not released, and how many of them were followed by a grant: only these
// have shown anything.
func (v *view) countUnreleased() (unreleased, recovered int) {
	for _, holds := range v.byKey {
		for n, i := range holds {
			if v.holds[i].ending == endReleased {
				continue
			}
			unreleased++
			if n+1 < len(holds) && v.freeTimes().extents.leaseEnd(i) <= v.h.End {
				recovered++
			}
		}
	}
	return unreleased, recovered
}

// waitRules are the numbers of the rules of a property that judges waits: the rule that convicts, and the two that
// excuse a wait by an outage or by a pause of its client.
type waitRules struct{ convict, outage, paused int }

// unservedWaits finds the waits that were not served although the key was free for one of the causes: for each gap
// the longest part of a wait that nothing excuses. It returns how many waits overlapped such gaps.
func (v *view) unservedWaits(o Options, e waitRules, found *findings, causes ...cause) int {
	if v.quorum && o.SimPriorities && o.applies(e.outage) {
		o.MayBeDown = 0
	}
	d, excuses := v.freeTimes(), v.excusesFor(o)
	left, kept, writers := v.leftByClose(), v.keptByMultiAcquires(o), v.lingeringWriters(o)
	met := 0
	for n := 0; n < len(d.waits); {
		g := &d.gaps[d.waits[n].gap]
		best := finding{rule: e.convict, x: g.last, y: -1}
		first := d.waits[n].gap
		away := o.excusedBy(e.outage, excuses(scope{key: g.key}).away.windows)
		for ; n < len(d.waits) && d.waits[n].gap == first; n++ {
			if !slices.Contains(causes, g.cause) {
				continue
			}
			met++
			s, client := &v.h.Spans[d.waits[n].span], v.client(d.waits[n].span)
			wait := segment{max(g.from, s.Call), min(g.until, s.Return)}
			if at, is := left[g.key]; is && o.applies(e.outage) {
				wait.until = max(wait.from, min(wait.until, at))
			}
			ahead := kept(d.waits[n].span)
			if !s.Write {
				ahead = merged(ahead, writers[g.key])
			}
			p := longestOutside(wait, away, o.excusedBy(e.paused, v.clientPauses()[client]), ahead)
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

// leftByClose is, by key, from when on a minority of a quorum may keep a released hold until its lease ends: a fault
// was in force when a client released it, and again or still when the client closed its lock object, which was the last
// time that it sent the release.
func (v *view) leftByClose() map[int32]time.Duration {
	if !v.quorum || !v.hasRare(func(s *history.Span) bool { return s.Op == history.OpReopen }) {
		return nil
	}
	left, released := make(map[int32]time.Duration), make(map[int]map[int32]bool)
	faults := disturbances{times: v.faultTimes()}
	for i := range v.h.Spans {
		s, client := &v.h.Spans[i], v.client(int32(i))
		if s.Op != history.OpRelease && s.Op != history.OpReopen {
			continue
		}
		met := faults.any(segment{s.Call, s.Return}, func(f *faultTime) bool {
			return f.client() < 0 || f.client() == client
		})
		switch {
		case s.Op == history.OpReopen:
			for key := range released[client] {
				if at, is := left[key]; met && (!is || s.Call < at) {
					left[key] = s.Call
				}
			}
			delete(released, client)
		case met:
			if released[client] == nil {
				released[client] = make(map[int32]bool)
			}
			released[client][s.Key] = true
		}
	}
	return left
}

// merged is all lists in one, sorted.
func merged(lists ...[]segment) []segment {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(x, y segment) int { return cmp.Compare(x.from, y.from) })
	return all
}

// recoveryViolation puts a finding of [Recovery] into words.
func (v *view) recoveryViolation(f finding) Violation {
	switch f.rule {
	case keptBeyond:
		return v.wrongHoldViolation(f)
	case probeFailed, neverFree:
		return v.probeViolation(f)
	case renewedBeyond:
		return v.word(f, wording{"", nothing, "a lock renews a hold for no longer than its limit",
			"client $client was granted $lock at $return, and the lock renewed that hold until $end or later, although it may " +
				"do so only until $start"})
	}
	f.note = fmt.Sprintf("%s, and its lease had ended by %s", v.unreleased(&v.holds[f.x]), format.Instant(v.leaseOver(f)))
	return v.word(f, wording{"", aHold,
		"a lock that its holder does not release is granted again when its lease has ended",
		"$note; client $client waited for $length until $end, and no client was granted it"})
}

// unreleased says that a hold was left to its lease: its release, if there is one, may have had no effect.
func (v *view) unreleased(h *hold) string {
	client, lock := v.client(h.span), lockName(v.h.Keys[h.key])
	if v.endOf(h) == ReleaseUnknown {
		return fmt.Sprintf("client %d asked to release %s, with an unknown outcome", client, lock)
	}
	return fmt.Sprintf("client %d never released %s", client, lock)
}

// hadEnded says that the last hold, or the acquire that may be it, had ended by t, although the lock is not free.
func (v *view) hadEnded(last int32, t time.Duration) string {
	s := &v.h.Spans[last]
	client := s.Process.Client(v.h.Clients)
	if s.Outcome == history.OK {
		return fmt.Sprintf(", although the last hold, by client %d, had ended by %s", client, format.Instant(t))
	}
	return fmt.Sprintf(", although nobody can have held it since %s: the outcome of the last acquire, by client %d, is "+
		"unknown, and its lease had ended by then", format.Instant(t), client)
}
