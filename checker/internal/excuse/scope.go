package excuse

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// This file decides which faults excuse a lock for an operation. Three promises of a lock limit the scope of a fault: a
// server that hangs does not affect the keys of another server ([promise.PerServerFailures]), full memory affects
// neither releases nor renewals ([promise.ReleasesWhenMemoryFull]), and the migration of a slot affects neither
// acquires, releases nor renewals ([promise.SurvivesSlotMigration]).

// Scope is a part of the lock's behavior that a fault may affect or leave alone.
type Scope struct {
	Key              int32 // none: all keys
	ReleaseOrRenewal bool  // releases and renewals, also automatic ones
	OperatorOnly     bool  // operations of operators: inspections, forced releases, new numbers of permits
}

// wholeLock is the scope of all operations at all keys.
func wholeLock() Scope { return Scope{Key: refs.None} }

// ScopeOf is the scope of one operation.
func ScopeOf(s *history.Span) Scope {
	releaseOrRenewal := s.Op == history.OpRelease || s.Op == history.OpRenew
	return Scope{s.Key, releaseOrRenewal, !releaseOrRenewal && !IsAcquire(s.Op)}
}

// doesNotAffect reports whether the lock promises that fault id does not affect in: a fault at node (empty: at all
// servers) that affects the words of affects (see history.FaultValue). A migration that is never over leaves a slot
// without a server, because a server that took part has failed.
func (v *View) doesNotAffect(id int, node, affects string, in Scope, o given.Options) bool {
	over := func(f history.Fault) bool { return f.ID == id && f.Phase == history.Healed }
	switch {
	case o.States(promise.SurvivesSlotMigration) && !in.OperatorOnly && AffectsWord(affects, history.AffectsSlots) &&
		slices.ContainsFunc(v.H.Faults, over),
		o.States(promise.ReleasesWhenMemoryFull) && in.ReleaseOrRenewal && AffectsWord(affects, history.AffectsMemory):
		return true
	case o.Isolation() == 0 || in.Key == refs.None || !isServer(node):
		return false
	}
	home := v.Homes()[in.Key]
	return home != "" && home != node
}

// WithoutSlowMigration is o for a rule about the duration of an acquire, a try or a release. While a slot migrates,
// each of them takes many requests, one after the other; where a connection may be slow without a fault
// (Options.SimPriorities), these alone may take longer than the slack. Then a migration is an excuse, if the rule with
// number acquits applies.
func WithoutSlowMigration(o given.Options, acquits int) given.Options {
	if o.SimPriorities && o.Applies(acquits) {
		o.Promises = o.Promises.Without(promise.SurvivesSlotMigration)
	}
	return o
}

// LongestOutage is the longest time that a fault at a server, or the silence of one, lasted.
func (v *View) LongestOutage() (longest time.Duration) {
	for _, f := range slices.Concat(v.Silences(), v.FaultTimes()) {
		if f.Client() < 0 {
			longest = max(longest, min(f.Until, v.H.End)-f.From)
		}
	}
	return longest
}

// AffectsNowhere reports whether a fault leaves a scope alone at each of the servers that it targets.
func (v *View) AffectsNowhere(f *FaultTime, in Scope, o given.Options) bool {
	return f.Client() < 0 && !f.ChangesRoles && !slices.ContainsFunc(TargetNodes(f.Target), func(node string) bool {
		return !v.doesNotAffect(f.id, node, f.Affects, in, o)
	})
}

// disturbancesFor returns the faults and events that may explain the lock's behavior in a scope.
func (v *View) disturbancesFor(in Scope, o given.Options) Disturbances {
	d := v.AllDisturbances(o)
	d.Times = slices.DeleteFunc(slices.Clone(d.Times), func(f FaultTime) bool { return v.AffectsNowhere(&f, in, o) })
	return d
}

// Excuses are the times at which the lock is excused in one scope.
type Excuses struct {
	Away OutageWindows
	Dis  Disturbances
}

// ExcusesFor returns a function that finds the excuses of a scope. It computes them once for each scope.
func (v *View) ExcusesFor(o given.Options) func(in Scope) Excuses {
	known := make(map[Scope]Excuses)
	return func(in Scope) Excuses {
		if o.Isolation() == 0 {
			in.Key = refs.None
		}
		e, is := known[in]
		if !is {
			e = Excuses{v.OutagesFor(in, o), v.disturbancesFor(in, o)}
			known[in] = e
		}
		return e
	}
}
