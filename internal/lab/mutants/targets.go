package mutants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/scenarios"
	"github.com/lockchaos/lockchaos/topology"
)

// Target is a scenario to explore, as a user does it.
type Target struct {
	Scenario string `json:"scenario"`
	Lock     string `json:"lock,omitempty"` // in place of the scenario's own; "": that one

	scenario scenarios.Scenario
	drawn    *generator.Lock // draws the scenario of each seed, in place of scenario; nil: it does not
}

// generated is the scenario of a target whose scenarios are drawn.
const generated = "generated"

// DrawnTargets are, for each kind, its locks, with scenarios that are drawn for them.
func DrawnTargets() (Targets, error) {
	all := Targets{}
	for _, kind := range kinds() {
		names := locksOf(kind)
		if kind == etcd {
			continue // it is not simulated
		}
		if kind == "non-reentrant" {
			names = append(names, refusing()...)
		}
		for _, name := range names {
			l, err := generator.Find(name)
			if err != nil {
				return nil, err
			}
			t := Target{Scenario: generated, Lock: name, drawn: &l}
			t.scenario.Lock = name
			t.scenario.Expect.Verdict = string(checker.Safe)
			all[kind] = append(all[kind], t)
		}
	}
	return all, nil
}

// exploration is the options of an exploration of some seeds.
func (t Target) exploration(first uint64, seeds int) explore.Options {
	o := explore.Options{Name: t.String(), First: first, Seeds: seeds, Jobs: 1}
	if t.drawn == nil {
		o.Scenario = t.scenario.YAML()
		return o
	}
	o.NoVariations = true
	o.Draw = func(seed uint64) (explore.Drawn, error) {
		s, err := t.drawn.Draw(seed)
		return explore.Drawn{Scenario: s.YAML(), Name: s.Name + " --lock " + t.Lock}, err
	}
	return o
}

// String is the target as flags of chaos explore.
func (t Target) String() string {
	if t.Lock == "" {
		return t.Scenario
	}
	return t.Scenario + " --lock " + t.Lock
}

// otherLayouts are the locks that have a layout, and so scripts, of their own.
func otherLayouts() []string { return []string{"redisson-layout", "redisson-fenced"} }

// hasOtherLayout reports whether the lock of a target is one of them.
func hasOtherLayout(t Target) bool { return slices.Contains(otherLayouts(), t.scenario.Lock) }

// ofOtherLayout reports whether a row changes code that only those locks use.
func ofOtherLayout(r Row) bool { return strings.Contains(r.File, "redisson") || r.File == "layout.go" }

// locksOf are the locks whose scenarios reach the code of a kind.
func locksOf(kind string) []string {
	switch kind {
	case "mutex":
		return append([]string{"reentrant", "spin", "mutex", "several-kinds"}, otherLayouts()...)
	case "fencing":
		return []string{"reentrant", "fenced", "fair", "readers-writer", "redisson-fenced"}
	case "readers-writer":
		return []string{"readers-writer", "writer-preference"}
	case "multi":
		return []string{"multi", "multi-kinds", "multi-permits"}
	case "quorum":
		return []string{"redlock"}
	case "semaphore":
		return []string{"permits", "semaphore", "fair-permits"}
	case zooKeeper:
		return []string{"zk-mutex", "zk-readers-writer", "zk-semaphore", "zk-multi"}
	case etcd:
		return []string{"etcd-mutex", "etcd-readers-writer", "etcd-semaphore", "etcd-multi"}
	}
	return []string{kind}
}

// refusing are the locks that refuse a re-entry if an option of the scenario says so.
func refusing() []string { return []string{"fair", "readers-writer", "multi"} }

// Targets are the scenarios that reach each kind of lock.
type Targets map[string][]Target

// AllTargets are, for each kind, the scenarios of the catalog that use such a lock, and the safe ones of the reentrant
// mutex and of other locks of the kind, with such a lock; shorter ones come first, and a few very long ones last. Few
// scenarios of the catalog are for ZooKeeper: more are drawn for its locks.
func AllTargets() (Targets, error) {
	catalog, err := scenarios.Catalog()
	if err != nil {
		return nil, fmt.Errorf("listing scenarios: %w", err)
	}
	drawn, err := DrawnTargets()
	if err != nil {
		return nil, err
	}
	all := Targets{}
	for _, kind := range kinds() {
		var own, lent []Target
		if kind == zooKeeper {
			lent = drawn[kind] // which have no duration, so that they come before the others
		}
		locks := locksOf(kind)
		for _, s := range catalog {
			its := slices.Contains(locks, s.Lock)
			refuses := kind == "non-reentrant" && s.Options["reentry"] != ""
			if its || refuses {
				own = append(own, Target{Scenario: s.Name, scenario: s})
			}
			if refuses {
				lent = append(lent, lend(s, refusing())...)
			}
			if (its || s.Lock == "reentrant") && s.Expect.Is(checker.Safe) {
				lent = append(lent, lend(s, locks)...)
			}
		}
		for _, some := range [][]Target{own, lent} {
			slices.SortStableFunc(some, func(a, b Target) int { return cmp.Compare(cost(a), cost(b)) })
			all[kind] = append(all[kind], some...)
		}
		slices.SortStableFunc(all[kind], func(a, b Target) int { return cmp.Compare(longRun(a), longRun(b)) })
	}
	return all, nil
}

// longRun is 1 for a target that takes as long as a hundred others, and else 0.
func longRun(t Target) int {
	if cost(t) > 10*time.Minute {
		return 1
	}
	return 0
}

// lend is the scenario with each of locks that it can use in place of its own.
func lend(s scenarios.Scenario, locks []string) (all []Target) {
	for _, lock := range locks {
		o, err := scenarios.Load(s.Name, scenarios.Override{As: "--lock", Path: "lock", Value: lock})
		if err == nil && lock != s.Lock {
			all = append(all, Target{Scenario: s.Name, Lock: lock, scenario: o})
		}
	}
	return all
}

// Of are the targets for a row, its own first; targets of the other layout only for a row of that layout.
func (t Targets) Of(r Row) []Target {
	all := slices.DeleteFunc(slices.Clone(t[r.Kind]), func(t Target) bool {
		return hasOtherLayout(t) != ofOtherLayout(r) && rank(r.First, t) == len(r.First)
	})
	slices.SortStableFunc(all, func(a, b Target) int { return rank(r.First, a) - rank(r.First, b) })
	return all
}

// rank is the place of t in first, or the length of first.
func rank(first []string, t Target) int {
	if i := slices.IndexFunc(first, func(s string) bool { return strings.TrimSpace(s) == t.String() }); i >= 0 {
		return i
	}
	return len(first)
}

// cost estimates how long a run takes: servers and clients, and for how long they work.
func cost(t Target) time.Duration {
	servers := 1
	if t.scenario.Topology.Kind != topology.Single {
		servers = 5
	}
	clients := t.scenario.Workload.Defaults().Clients
	return t.scenario.Duration * time.Duration(servers+clients)
}
