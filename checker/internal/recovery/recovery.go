// Package recovery judges whether a lock is granted again after a hold was not released.
package recovery

import (
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/internal/format"
)

// leaseOver is when the key of a finding became free because a lease ended.
func leaseOver(v *bounds.View, f finding.Finding) time.Duration {
	for _, g := range v.FreeTimes().Gaps {
		if g.Last == f.X && g.Cause == bounds.AfterExpiry && g.From <= f.Start && f.End <= g.Until {
			return g.From
		}
	}
	return f.Start
}

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

func Rules() finding.Rules {
	return finding.Rules{
		notGrantedAgain: {Name: "not-granted-again", X: finding.AHold,
			Sentence: "a lock that its holder does not release is granted again when its lease has ended",
			Text:     "$note; client $client waited for $length until $end, and no client was granted it"},
		renewedBeyond: {Name: "renewed-beyond-limit", Sentence: "a lock renews a hold for no longer than its limit",
			Text: "client $client was granted $lock at $return, and the lock renewed that hold until $end or later, although " +
				"it may do so only until $start"},
		probeFailed: {Name: "probe-failed"}, neverFree: {Name: "never-free"}, keptBeyond: {Name: "kept-beyond-lease"},
		recoverOutage: {Name: "outage"},
		recoverPaused: {Name: "waiter-paused"}, recoverHeld: {Name: "may-be-held"}, recoverSoon: {Name: "just-ended"},
		recoverQueued: {Name: "may-be-queued"}, recoverUnleased: {Name: "permits-of-dead"},
		recoverSteps: {Name: "slow-requests"},
	}
}

// Check looks for locks that did not recover by themselves. If a holder crashes, or hangs and never releases,
// the lease has to end the hold: the key is free when the last lease that can have been in force has ended (see
// package bounds). If a client waited after that for longer than the slack, while the servers were available, and no
// client was granted the lock, it did not recover. A probe at the end of the run is such a wait in one event.
//
// A lock without a lease has no end of a lease to count from. But the harness probes when the clients are done and
// nothing at the servers has a time to live: if all that can hold the lock then was lost more than the slack before,
// and the probe is refused, nothing will ever free it. A refused probe that cannot be judged leaves the property
// undecided.
//
// It is sound up to the slack: the intervals are the longest possible ones. It says nothing about a crash after which
// no client requested the lock.
func Check(v *bounds.View, o given.Options) property.Result {
	found := finding.New(o)
	unreleased, recovered := countUnreleased(v)
	waits := 0
	if unreleased > 0 {
		timed, rules := excuse.WithoutSlowMigration(o, recoverSteps),
			waiting.WaitRules{Convict: notGrantedAgain, Outage: recoverOutage, Paused: recoverPaused}
		waits = waiting.UnservedWaits(v, timed, rules, found, bounds.AfterExpiry)
	}
	probed, open := judgeProbes(v, o, found)
	if open == "" {
		open = unprobed(v, o)
	}
	if open == "" && o.Applies(recoverUnleased) {
		open = permitsOfDead(v, o)
	}
	if open == "" && recovered == 0 && probed == 0 {
		open = unrecovered(v, o)
	}
	finding.AddWrongHolds(v, servers.HeldTooLongForLease, keptBeyond, found)
	limited := judgeLimits(v, o, found)
	r := found.Result(property.Recovery, func(f finding.Finding) property.Violation { return recoveryViolation(v, f) })
	r.Counts = map[string]int64{"holds_not_released": int64(unreleased), "granted_again": int64(recovered),
		"waits_after": int64(waits), "probes": int64(probed)}
	if limited > 0 {
		r.Counts["limited"] = int64(limited)
	}
	switch {
	case r.Outcome == property.Violated:
	case open != "":
		r.Outcome, r.Summary = property.Undecided, open
	case recovered == 0 && probed == 0:
		r.Outcome, r.Summary = property.NotApplicable, finding.NothingToRecover
	default:
		r.Summary = fmt.Sprintf("%s not released, %d followed by another grant; the lock was granted to %s at the end",
			format.Count(unreleased, "hold"), recovered, format.Count(probed, "probe"))
	}
	return r
}

// countUnreleased counts the holds that were not released, and how many of them were followed by a grant: only these
// have shown anything.
func countUnreleased(v *bounds.View) (unreleased, recovered int) {
	for _, holds := range v.ByKey {
		for n, i := range holds {
			if v.Holds[i].Ending == ledger.EndReleased {
				continue
			}
			unreleased++
			if n+1 < len(holds) && v.FreeTimes().Extents.LeaseEnd(i) <= v.H.End {
				recovered++
			}
		}
	}
	return unreleased, recovered
}

// recoveryViolation puts a finding of [property.Recovery] into words.
func recoveryViolation(v *bounds.View, f finding.Finding) property.Violation {
	switch f.Rule {
	case keptBeyond:
		return finding.WrongHoldViolation(v, f)
	case probeFailed, neverFree:
		return probeViolation(v, f)
	case renewedBeyond:
		return finding.Word(v, f, Rules()[f.Rule])
	}
	f.Note = fmt.Sprintf("%s, and its lease had ended by %s", unreleased(v, &v.Holds[f.X]),
		format.Instant(leaseOver(v, f)))
	return finding.Word(v, f, Rules()[f.Rule])
}

// unreleased says that a hold was left to its lease: its release, if there is one, may have had no effect.
func unreleased(v *bounds.View, h *ledger.Hold) string {
	client, lock := v.Client(h.Span), finding.LockName(v.H.Keys[h.Key])
	if v.EndOf(h) == property.ReleaseUnknown {
		return fmt.Sprintf("client %d asked to release %s, with an unknown outcome", client, lock)
	}
	return fmt.Sprintf("client %d never released %s", client, lock)
}
