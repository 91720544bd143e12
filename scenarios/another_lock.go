package scenarios

import (
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/expect"
)

// ExpectOfAnotherLock is the expectation of s in a run with another lock than its text's. An unsafe verdict was written
// for the lock of the text, which may have a flaw, or promise too little: another lock may end safe, or outlive its
// lease, which no lease prevents. It may break its promise only if the lock of the text does so and a fault can take
// grants from servers. A safe verdict remains expected. An exception allows that its property holds or does not apply,
// and the outcomes that it allowed before, except a violation by the lock of the text alone.
func (s Scenario) ExpectOfAnotherLock() Expect {
	e, excused := s.Expect, s.losesGrants()
	unsafe, undecided := e.Is(checker.Unsafe), e.Is(checker.Inconclusive)
	if len(e.Except) > 0 {
		e.Except = map[string]Exception{}
	}
	for name, x := range s.Expect.Except {
		before, allowed := Expected{Outcome: x.Outcome}, []checker.Outcome{checker.Holds}
		if excused && before.Has(checker.Violated) || unsafe && overlaps(checker.Property(name), excused) {
			allowed = append(allowed, checker.Violated)
		}
		if before.Has(checker.Undecided) {
			undecided, allowed = true, append(allowed, checker.Undecided)
		}
		x.Outcome = join(append(allowed, checker.NotApplicable)...)
		e.Except[name] = x
	}
	if e.IsZero() {
		return e
	}
	e.Verdict = string(checker.Safe)
	if undecided {
		e.Verdict += expect.OutcomeWord + string(checker.Inconclusive)
	}
	if unsafe {
		e.Verdict += expect.OutcomeWord + string(checker.Unsafe) + classWord + string(checker.OutlivedLease)
	}
	if excused {
		e.Verdict += expect.OutcomeWord + string(checker.BrokenPromise)
	}
	return e
}

// overlaps reports whether two owners of a lock at the same time violate p, with a broken promise or without.
func overlaps(p checker.Property, brokenPromise bool) bool {
	return p == checker.LeaseExclusion && brokenPromise || slices.Contains([]checker.Property{
		checker.Exclusion, checker.Permits, checker.ReadersWriter, checker.Linearizable, checker.Damage,
	}, p)
}

// losesGrants reports whether a broken promise is expected, or any violation, and a fault can take a grant from the
// servers: it changes their data or clocks, or has them elect a replica as master, which need not have the grant.
func (s Scenario) losesGrants() bool {
	_, class := s.Expect.Split()
	anyViolation := s.Expect.Is(checker.Unsafe) && class == "" && !s.Expect.namesViolation()
	electing := s.Topology.Kind == cluster.Sentinel || s.Topology.Kind == cluster.Sharded
	return (anyViolation || slices.Contains(expect.Outcomes(class), string(checker.BrokenPromise))) &&
		slices.ContainsFunc(s.FaultNames(), func(name string) bool {
			row, err := faults.Lookup(name) // the loader has checked it
			words := strings.Fields(row.Affects)
			return err == nil && (len(words) == 0 || slices.Contains(words, history.AffectsData) ||
				electing && slices.Contains(words, history.AffectsTraffic))
		})
}
