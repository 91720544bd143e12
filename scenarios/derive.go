package scenarios

import (
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// Expected is an expected outcome, and why it is expected.
type Expected struct {
	Outcome string // several are separated by " or "
	Because string // the reason, for people
}

// Expected is the expected outcome of every property in a run with a lock that states can. It is nil if the scenario
// expects nothing, and empty if it expects a violation without saying of which property.
//
// A property applies if the lock states the promise that it is about, and the workload uses it:
//
//	exclusion, lease-exclusion  the lock is neither a latch nor a semaphore of several permits
//	permits                     the lock has permits
//	readers-writer              the lock has modes, and the workload uses them
//	fencing                     the lock is fenced, or the guarded resource is; another lock may have tokens as well
//	damage                      mutex, leader and readers-writer write in each critical section, mixed writes in some
//	honesty                     always; of a latch only if it is also released or renewed
//	hold-count                  replies have counts, or mixed enters a lock twice; another lock may count as well
//	recovery                    always: at the end of a run, a client acquires each key
//	wake-up                     always: acquires wait
//	order                       the lock is fair; with preference for writers, if a writer is seen to wait
//	leak                        the harness knows the keys of the lock, and nobody holds it when the servers are read
//	latch                       the lock is a latch
//	linearizable                always; waits for permits and of readers may leave no key that has a model
//	exercised                   always
//
// A property that applies must hold, with these exceptions. In a run with class broken promise, two owners hold the
// lock at the same time, which violates lease-exclusion and exclusion (permits, and readers-writer), damage, and
// linearizable. With class outlived lease, it is the same after a lease has ended: lease-exclusion holds, and damage
// if the guarded resource checks the tokens of the lock. Either class may be expected: the loss of a hold is then
// reported at about the time of the next grant. Where the verdict may also be safe or inconclusive, all that a class
// violates may hold, and where it may be inconclusive, every property may be undecided or not apply. Of a latch only
// latch, exercised, and perhaps leak and honesty apply.
func (s Scenario) Expected(can promise.Set) map[checker.Property]Expected {
	if s.Expect.IsZero() {
		return nil
	}
	d := derivation{can: can, w: s.Workload.Defaults()}
	all := d.applied()
	_, class := s.Expect.Split()
	undecided := s.Expect.Is(checker.Inconclusive)
	switch {
	case class != "":
		d.violate(all, class, undecided || s.Expect.Is(checker.Safe))
	case s.Expect.Is(checker.Unsafe) && !s.Expect.namesViolation():
		return map[checker.Property]Expected{}
	}
	for name, x := range all {
		if undecided {
			all[name] = x.orUndecided()
		}
	}
	for name, x := range s.Expect.Except {
		derived := all[checker.Property(name)]
		if derived.Outcome == string(checker.NotApplicable) { // perhaps because this lock does not promise it
			x.Outcome = join(checker.Outcome(x.Outcome), checker.NotApplicable)
		}
		all[checker.Property(name)] = Expected(x)
	}
	return all
}

// ExpectedOfLock is [Scenario.Expected] with the promises of the scenario's locks in the catalogs of locks; a
// program of the user has none there.
func (s Scenario) ExpectedOfLock() (map[checker.Property]Expected, error) {
	var all []promise.Set
	for _, name := range s.LockNames() {
		row, err := adapters.Lookup(name)
		if err != nil {
			return nil, err
		}
		all = append(all, row.Can)
	}
	return s.Expected(promise.Common(all...)), nil
}

// orUndecided is e in a run that may be inconclusive.
func (e Expected) orUndecided() Expected {
	if e.Has(checker.Violated) {
		return Expected{join(checker.Holds, checker.Violated, checker.Undecided, checker.NotApplicable), e.Because}
	}
	return Expected{join(checker.Holds, checker.Undecided, checker.NotApplicable), "an inconclusive run violates nothing"}
}

// Has reports whether o is one of the expected outcomes.
func (e Expected) Has(o checker.Outcome) bool {
	return slices.Contains(expect.Outcomes(e.Outcome), string(o))
}

// join is the text of several outcomes.
func join(outcomes ...checker.Outcome) string {
	texts := make([]string, len(outcomes))
	for i, o := range outcomes {
		texts[i] = string(o)
	}
	return strings.Join(texts, expect.OutcomeWord)
}

// namesViolation reports whether an exception says which property is violated.
func (e Expect) namesViolation() bool {
	for _, x := range e.Except {
		if (Expected{Outcome: x.Outcome}).Has(checker.Violated) {
			return true
		}
	}
	return false
}

// derivation derives the outcomes of a run from the promises of its lock and from its workload.
type derivation struct {
	can promise.Set
	w   workload.Params
}

func (d derivation) has(c promise.Set) bool { return d.can.Has(c) }

// runs reports whether the workload is one of these.
func (d derivation) runs(kinds ...string) bool { return slices.Contains(kinds, d.w.Kind) }

func (d derivation) semaphore() bool {
	return d.has(promise.Permits) && d.runs("semaphore", "mixed", "waiters")
}

func (d derivation) shared() bool {
	return d.has(promise.ReadWrite) && d.runs("readers-writer", "mixed", "waiters")
}

// applied are the outcomes of a run that violates nothing.
func (d derivation) applied() map[checker.Property]Expected {
	latch := d.has(promise.Latch)
	exclusive := !latch && (!d.semaphore() || d.w.Permits == 1)
	all := map[checker.Property]Expected{
		checker.Exclusion:      applies(exclusive, "the lock has one holder", "the lock may have several"),
		checker.LeaseExclusion: applies(exclusive, "the lock has one holder", "the lock may have several"),
		checker.Permits:        applies(d.semaphore(), "the lock states permits", "the lock states no permits"),
		checker.ReadersWriter:  applies(d.shared(), "the lock states read-write", "no client only reads"),
		checker.Order:          applies(d.has(promise.Fair), "the lock states fair", "the lock states no order"),
		checker.Latch:          applies(latch, "the lock states latch", "the lock is no latch"),
		checker.Honesty:        always("releases and renewals have replies"),
		checker.Recovery:       always("at the end a client acquires each key"),
		checker.WakeUp:         always("acquires wait"),
		checker.Linearizable:   always("every key has a model"),
		checker.Exercised:      always("a run tests its lock"),
		checker.Leak:           may("the servers can be read if the lock is known, and free at the end"),
		checker.Fencing:        d.fencing(),
		checker.Damage:         d.damage(exclusive),
		checker.HoldCount:      d.holdCount(),
	}
	if d.has(promise.WriterPreference) && !d.has(promise.Fair) {
		all[checker.Order] = may("the lock states writer-preference, and perhaps no writer waits")
	}
	if d.runs("waiters") && (d.semaphore() || d.shared()) {
		all[checker.Linearizable] = may("perhaps no key has a model: changes of permits and reads have none")
	}
	if latch {
		for _, name := range []checker.Property{
			checker.Recovery, checker.WakeUp, checker.Linearizable, checker.Fencing, checker.Damage, checker.HoldCount,
		} {
			all[name] = applies(false, "", "the lock is a latch")
		}
		all[checker.Honesty] = may("clients of a latch need not release or renew")
	}
	return all
}

// Unstated begins the reason of a property that applies only if the lock does more than it states.
const Unstated = "the lock does not state "

func (d derivation) fencing() Expected {
	if d.has(promise.Fenced) || d.w.Fenced {
		return always("the lock states fenced, or the guarded resource checks tokens")
	}
	return may(Unstated + "fenced")
}

func (d derivation) damage(exclusive bool) Expected {
	switch {
	case exclusive && d.runs("mixed"):
		return may("some sequences of workload mixed write")
	case exclusive && d.runs("mutex", "leader", "readers-writer"):
		return always("each holder writes")
	}
	return applies(false, "", "no client writes")
}

func (d derivation) holdCount() Expected {
	switch {
	case d.has(promise.CountsHolds):
		return always("the lock states counts-holds")
	case d.runs("mixed") && d.w.Sequences == "" && (d.has(promise.Reentrant) || d.has(promise.RefusesReentry)):
		return always("owners request a lock that they hold")
	case d.semaphore():
		return applies(false, "", "a semaphore has no hold count")
	}
	return may(Unstated + "counts-holds")
}

// violate changes the outcomes for a run in which two owners hold the lock at the same time, or may do so.
func (d derivation) violate(all map[checker.Property]Expected, class string, perhaps bool) {
	why := "class " + class
	damage, overlap := join(checker.Violated), join(checker.Violated)
	either := class != string(checker.BrokenPromise) && class != string(checker.OutlivedLease)
	if perhaps || either { // either: the holder learns of its loss at about the time of the next grant
		overlap = join(checker.Holds, checker.Violated)
	}
	if perhaps {
		why += ", or none"
		damage = overlap
	}
	leases := overlap
	if class == string(checker.OutlivedLease) {
		leases = join(checker.Holds)
	}
	change := func(name checker.Property, outcome string) {
		if all[name].Outcome == join(checker.Holds) {
			all[name] = Expected{outcome, why}
		}
	}
	change(checker.LeaseExclusion, leases)
	for _, name := range []checker.Property{
		checker.Exclusion, checker.Permits, checker.ReadersWriter, checker.Linearizable,
	} {
		change(name, overlap)
	}
	if tokens := d.w.Fenced && d.has(promise.Fenced); !tokens || class != string(checker.OutlivedLease) {
		change(checker.Damage, damage)
	}
}

// applies is the outcome of a property that must hold if it applies.
func applies(yes bool, because, otherwise string) Expected {
	if yes {
		return always(because)
	}
	return Expected{join(checker.NotApplicable), otherwise}
}

func always(because string) Expected { return Expected{join(checker.Holds), because} }

func may(because string) Expected {
	return Expected{join(checker.Holds, checker.NotApplicable), because}
}
