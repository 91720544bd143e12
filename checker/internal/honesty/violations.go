package honesty

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/keeping"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judge applies every rule. Those of one promise return at once if the lock does not state it.
func judge(c *claims.Check) {
	releasesOfNothing(c)
	operationsOfOthers(c)
	judgeLosses(c)
	keeping.JudgeKeptPromises(c)
	keeping.JudgeConfirmedLost(c)
	keeping.FewerPermits(c)
	judgeExtended(c)
	judgeAnswers(c)
	keeping.JudgeLostGrants(c)
	judgeRenewed(c)
	judgeExpired(c)
	judgeShown(c)
	judgeWaiters(c)
	judgeFailures(c)
	judgeFailuresOfHealthy(c)
	judgeEffectsOfFailures(c)
	judgeContradictions(c)
	judgeForcedReleases(c)
	judgeLateRenewals(c)
	keeping.JudgeResurrected(c)
	judgeOwnerNamed(c)
	judgeAfterRelease(c)
	judgeRenewedOthers(c)
	keeping.JudgeDeniedGrants(c)
	judgeForeign(c)
	judgeNotSetUp(c)
	judgeUnacknowledged(c)
	keeping.JudgeStolen(c)
}

// violation puts a finding of [property.Honesty] into words.
func violation(c *claims.Check, f finding.Finding) property.Violation {
	if put := (map[int]func(*claims.Check, finding.Finding) property.Violation{
		claims.NotKept: keeping.UnkeptPromiseViolation, claims.KeptShorter: keeping.UnkeptPromiseViolation,
		claims.LossLate:      lossViolation,
		claims.LossUnfounded: lossViolation, claims.GaveUpEarly: failureViolation,
		claims.FailedWithEffect: failedWithEffectViolation,
		claims.Resurrected:      keeping.ResurrectedViolation, claims.SelfRenewed: renewedItselfViolation,
		claims.NoticedAfter: noticedViolation,
		claims.Stolen:       keeping.StolenViolation,
	})[f.Rule]; put != nil {
		return put(c, f)
	}
	w := claims.Rules()[f.Rule]
	ofNothing := f.Rule == claims.ReleasedNothing || f.Rule == claims.RenewedNothing || f.Rule == claims.ReleasedTwice
	if n := c.H.Spans[f.Y].Permits; ofNothing && n > 1 {
		w.Text = fmt.Sprintf("client $client $did %d permits of $lock at $return without an error, although it had fewer", n)
	}
	return finding.Word(c.View, f, w)
}

// lossViolation adds until when the promise to the hold of a finding lasted, and the event that ended it.
func lossViolation(c *claims.Check, f finding.Finding) property.Violation {
	h := &c.Holds[f.X]
	f.Note = finding.PromiseEnd(h.LastPromise())
	if f.Rule == claims.LossLate {
		f.Note = format.Instant(validUntil(c, h))
	}
	w := finding.Word(c.View, f, claims.Rules()[f.Rule])
	if h.EndEvent >= 0 {
		w.Events = []int{c.Granted(h), int(h.EndEvent)}
	}
	return w
}
