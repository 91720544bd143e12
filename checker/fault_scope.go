package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// This file decides which faults excuse a lock for an operation. Three promises of a lock limit the scope of a fault: a
// server that hangs does not affect the keys of another server ([promise.PerServerFailures]), full memory affects
// neither releases nor renewals ([promise.ReleasesWhenMemoryFull]), and the migration of a slot affects neither
// acquires, releases nor renewals ([promise.SurvivesSlotMigration]).

// scope is a part of the lock's behavior that a fault may affect or leave alone.
type scope struct {
	key              int32 // none: all keys
	releaseOrRenewal bool  // releases and renewals, also automatic ones
	operatorOnly     bool  // operations of operators: inspections, forced releases, new numbers of permits
}

// wholeLock is the scope of all operations at all keys.
func wholeLock() scope { return scope{key: none} }

// scopeOf is the scope of one operation.
func scopeOf(s *history.Span) scope {
	releaseOrRenewal := s.Op == history.OpRelease || s.Op == history.OpRenew
	return scope{s.Key, releaseOrRenewal, !releaseOrRenewal && !isAcquire(s.Op)}
}

// doesNotAffect reports whether the lock promises that fault id does not affect in: a fault at node (empty: at all
// servers) that affects the words of affects (see history.FaultValue). A migration that is never over leaves a slot
// without a server, because a server that took part has failed.
func (v *view) doesNotAffect(id int, node, affects string, in scope, o Options) bool {
	over := func(f history.Fault) bool { return f.ID == id && f.Phase == history.Healed }
	switch {
	case o.states(promise.SurvivesSlotMigration) && !in.operatorOnly && affectsWord(affects, history.AffectsSlots) &&
		slices.ContainsFunc(v.h.Faults, over),
		o.states(promise.ReleasesWhenMemoryFull) && in.releaseOrRenewal && affectsWord(affects, history.AffectsMemory):
		return true
	case o.isolation() == 0 || in.key == none || !isServer(node):
		return false
	}
	home := v.homes()[in.key]
	return home != "" && home != node
}

// withoutSlowMigration is o for a rule about the duration of an acquire, a try or a release. While a slot migrates,
// each of them takes many requests, one after the other; where a connection may be slow without a fault
// (Options.SimPriorities), these alone may take longer than the slack. Then a migration is an excuse, if the rule with
// number acquits applies.
func (o Options) withoutSlowMigration(acquits int) Options {
	if o.SimPriorities && o.applies(acquits) {
		o.Promises = o.Promises.Without(promise.SurvivesSlotMigration)
	}
	return o
}

// findHomes finds, by key, the only server that ever stored a hold of it, according to the samples of masters; "" if
// several did, as after a failover, or if none is known. After a server was away for longer than Options.NodeTimeout,
// the others may have refused all commands: then none counts as known.
func (v *view) findHomes(nodeTimeout time.Duration) []string {
	homes, s := make([]string, len(v.h.Keys)), v.samples()
	if s == nil || v.longestOutage() > nodeTimeout {
		return homes
	}
	for key := range homes {
		for node, samples := range s.nodes {
			switch {
			case s.named[nodeKey{int32(node), int32(key)}] == nil:
			case homes[key] != "":
				homes[key] = severalServers
			default:
				homes[key] = s.h.Samples[samples[0]].Node
			}
		}
		if homes[key] == severalServers {
			homes[key] = ""
		}
	}
	return homes
}

// severalServers stands for the servers of a key that has more than one.
const severalServers = "several"

// longestOutage is the longest time that a fault at a server, or the silence of one, lasted.
func (v *view) longestOutage() (longest time.Duration) {
	for _, f := range slices.Concat(v.silences(), v.faultTimes()) {
		if f.client() < 0 {
			longest = max(longest, min(f.until, v.h.End)-f.from)
		}
	}
	return longest
}

// affectsNowhere reports whether a fault leaves a scope alone at each of the servers that it targets.
func (v *view) affectsNowhere(f *faultTime, in scope, o Options) bool {
	return f.client() < 0 && !f.changesRoles && !slices.ContainsFunc(targetNodes(f.target), func(node string) bool {
		return !v.doesNotAffect(f.id, node, f.affects, in, o)
	})
}

// disturbancesFor returns the faults and events that may explain the lock's behavior in a scope.
func (v *view) disturbancesFor(in scope, o Options) disturbances {
	d := v.allDisturbances(o)
	d.times = slices.DeleteFunc(slices.Clone(d.times), func(f faultTime) bool { return v.affectsNowhere(&f, in, o) })
	return d
}

// excuses are the times at which the lock is excused in one scope.
type excuses struct {
	away outageWindows
	dis  disturbances
}

// excusesFor returns a function that finds the excuses of a scope. It computes them once for each scope.
func (v *view) excusesFor(o Options) func(in scope) excuses {
	known := make(map[scope]excuses)
	return func(in scope) excuses {
		if o.isolation() == 0 {
			in.key = none
		}
		e, is := known[in]
		if !is {
			e = excuses{v.outagesFor(in, o), v.disturbancesFor(in, o)}
			known[in] = e
		}
		return e
	}
}
