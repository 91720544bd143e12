package generator

import (
	"maps"
	"slices"
	"testing"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/internal/testkit/golden"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/scenarios"
	"github.com/lockchaos/lockchaos/workloads"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// find is the lock of that name.
func find(t *testing.T, name string) Lock {
	t.Helper()
	l, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestEveryFaultHasARow: the table has each fault of the catalog, in its order, and says why some are never drawn.
func TestEveryFaultHasARow(t *testing.T) {
	rows := format.Texts(tolerances(), func(r tolerance) string { return r.fault })
	if all := format.Texts(faults.Catalog(), func(r faults.Spec) string { return r.Name }); !slices.Equal(rows, all) {
		t.Errorf("rows of the table: %q; faults of the catalog: %q", rows, all)
	}
	for _, r := range tolerances() {
		if (r.weight == 0) != (r.because != "") {
			t.Errorf("%s: it is drawn with weight %d, and the reason why it is never drawn is %q", r.fault, r.weight, r.because)
		}
	}
}

// TestReferenceIsCurrent: the page agrees with the table; -update rewrites it.
func TestReferenceIsCurrent(t *testing.T) {
	golden.File(t, "../../docs/reference/generated-scenarios.md", Reference())
}

// TestDrawForEveryLock: the same seed draws the same scenario, which is valid and has a topology of the lock.
func TestDrawForEveryLock(t *testing.T) {
	for _, row := range locks.Catalog() {
		l := find(t, row.Name)
		for seed := range uint64(40) {
			s, err := l.Draw(seed) // it checks the scenario
			if err != nil {
				t.Fatal(err)
			}
			if again, err := l.Draw(seed); err != nil || s.YAML() != again.YAML() {
				t.Fatalf("seed %d of %s draws two scenarios (%v):\n%s\n%s", seed, l.Name, err, s.YAML(), again.YAML())
			}
			if !row.Runs(s.Topology.Kind) || s.Lock != l.Name {
				t.Errorf("seed %d draws lock %s on %s for lock %s", seed, s.Lock, s.Topology.Kind, l.Name)
			}
			if n, ok := SeedOf(s.Name); !ok || n != seed {
				t.Errorf("scenario %s of seed %d has the seed %d (%v)", s.Name, seed, n, ok)
			}
		}
	}
}

// TestDrawReachesEverything: some seed of some lock has each fault that is drawn, each workload, and each topology. A
// leader is a holder of a mutex for longer, and has stories of its own.
func TestDrawReachesEverything(t *testing.T) {
	drawn := map[string]bool{}
	for _, name := range []string{"reentrant", "fair", "readers-writer", "permits", "latch", "redlock", "zk-mutex"} {
		l := find(t, name)
		for seed := range uint64(600) {
			s, err := l.Draw(seed)
			if err != nil {
				t.Fatal(err)
			}
			drawn[s.Topology.Kind], drawn[s.Workload.Kind] = true, true
			for _, fault := range s.FaultNames() {
				drawn[fault] = true
			}
		}
	}
	var want []string
	for _, r := range tolerances() {
		if r.weight > 0 {
			want = append(want, r.fault)
		}
	}
	want = append(want, format.Texts(workloads.Catalog(), func(r workload.Spec) string { return r.Name })...)
	want = append(want, cluster.Single, cluster.Replicated, cluster.Sentinel, cluster.Sharded, cluster.Quorum,
		cluster.ZooKeeper)
	for _, name := range want {
		if !drawn[name] && name != workload.Leader {
			t.Errorf("no seed draws %s", name)
		}
	}
}

// drawnFaults are the faults that 300 seeds draw for a lock. Drawing checks each scenario.
func drawnFaults(t *testing.T, l Lock) map[string]bool {
	t.Helper()
	drawn := map[string]bool{}
	for seed := range uint64(300) {
		s, err := l.Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range s.FaultNames() {
			drawn[name] = true
		}
	}
	return drawn
}

// TestDrawForServersOfTheUser: they are killed only if the lock promises to keep its grants then, and nothing is drawn
// that needs Redis, or a program that prints a role or the holder of a lock.
func TestDrawForServersOfTheUser(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		for _, keeps := range []bool{false, true} {
			l := find(t, "exec:./lock")
			l.Servers = &cluster.Topology{Kind: cluster.Command, Nodes: nodes, Run: "server {port.client} {peers.peer}"}
			l.Can = promise.Try
			if keeps {
				l.Can |= promise.KeepsGrants
			}
			drawn := drawnFaults(t, l)
			if drawn["kill"] != keeps || !drawn["partition"] || !drawn["client-crash"] || drawn["grant-reply-lost"] {
				t.Errorf("%d servers, keeps-grants %v: %v", nodes, keeps, slices.Sorted(maps.Keys(drawn)))
			}
		}
	}
}

// TestDrawForGivenServers: only clients and their connections have faults; without servers, only clients.
func TestDrawForGivenServers(t *testing.T) {
	for _, own := range []cluster.Topology{
		{Kind: cluster.Command, Addrs: []string{"a:1"}}, {Kind: cluster.Command, Addrs: []string{"a:1", "b:1", "c:1", "d:1"}},
		{Kind: cluster.None},
	} {
		l := find(t, "exec:./lock")
		l.Servers, l.Can = &own, promise.Try|promise.KeepsGrants
		drawn := drawnFaults(t, l)
		if drawn["kill"] || drawn["partition"] != (own.Kind == cluster.Command) || !drawn["client-crash"] {
			t.Errorf("%+v: %v", own, slices.Sorted(maps.Keys(drawn)))
		}
	}
}

// TestNoHolderIsPausedBeyondItsLease: a client that may have the lock is paused briefly, and without other faults.
func TestNoHolderIsPausedBeyondItsLease(t *testing.T) {
	holders, waiters := 0, 0
	for _, name := range []string{"fenced", "several-kinds", "multi-permits", "readers-writer"} {
		l := find(t, name)
		for seed := range uint64(1500) {
			s, err := l.Draw(seed)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range s.Faults {
				switch {
				case step.Fault != pauseClient:
				case step.Target == string(faults.Waiter) && s.Workload.Kind != workload.Mixed:
					waiters++
				case len(slices.Compact(s.FaultNames())) > 1 || s.Workload.Kind == workload.Mixed ||
					s.Workload.Lease > 0 && step.For+s.Workload.Hold+s.Workload.Jitter > s.Workload.Lease*9/10:
					t.Errorf("seed %d of %s pauses a holder:\n%s", seed, name, s.YAML())
				default:
					holders++
				}
			}
		}
	}
	if holders == 0 || waiters == 0 {
		t.Errorf("%d pauses of holders and %d of waiters were drawn", holders, waiters)
	}
}

// TestFaultsLeaveTimeForRenewals: while holders depend on renewals, a fault ends long before the lease, and the next
// one begins after a renewal.
func TestFaultsLeaveTimeForRenewals(t *testing.T) {
	renewed := 0
	for _, name := range []string{"reentrant", "permits", "redlock", "zk-mutex"} {
		l := find(t, name)
		for seed := range uint64(1000) {
			s, err := l.Draw(seed)
			if err != nil {
				t.Fatal(err)
			}
			d := draw{Scenario: s, can: l.Can}
			if !d.outworks() {
				continue
			}
			for i, step := range s.Faults {
				row, err := faults.Lookup(step.Fault)
				switch {
				case err != nil:
					t.Fatal(err)
				case step.For > d.renewedLease()/4, step.For == 0 && !row.OneShot,
					i > 0 && step.After-s.Faults[i-1].After-s.Faults[i-1].For < d.renewedLease():
					t.Errorf("seed %d of %s prevents renewals:\n%s", seed, name, s.YAML())
				}
			}
			if len(s.Faults) > 0 {
				renewed++
			}
		}
	}
	if renewed < 20 {
		t.Errorf("faults were drawn for %d runs whose holders depend on renewals", renewed)
	}
}

// TestDrawReachesSituations: each of these combinations is in at least 1 % of the scenarios of a lock.
func TestDrawReachesSituations(t *testing.T) {
	has := func(s scenarios.Scenario, fault string) bool { return slices.Contains(s.FaultNames(), fault) }
	situations := map[string]func(s scenarios.Scenario) bool{
		"rounds without faults, in which only a message wakes": func(s scenarios.Scenario) bool {
			return s.Workload.Kind == workload.Waiters && len(s.Faults) == 0 && s.Options[optionPoll] == "20s"
		},
		"rounds on a cluster whose slots migrate": func(s scenarios.Scenario) bool {
			return s.Workload.Kind == workload.Waiters && has(s, "slot-migration")
		},
		"holds that outlast several renewals": func(s scenarios.Scenario) bool {
			return s.Workload.Kind == workload.Mutex && s.Workload.Lease == 0 && s.OptionLease() > 0 &&
				s.Workload.Hold > s.OptionLease()
		},
		"many clients of one program": func(s scenarios.Scenario) bool { return s.Workload.PerInstance > 8 },
		"more keys than clients":      func(s scenarios.Scenario) bool { return s.Workload.Keys > s.Workload.Clients },
		"a fault that is repeated to the end": func(s scenarios.Scenario) bool {
			return len(s.Faults) > 4 && len(slices.Compact(s.FaultNames())) == 1
		},
		"a slow network throughout": func(s scenarios.Scenario) bool {
			return slices.ContainsFunc(s.Faults, func(f scenarios.Step) bool {
				return f.Fault == "latency" && f.After+f.For == 0
			})
		},
		"a client that dies while it waits": func(s scenarios.Scenario) bool {
			return slices.ContainsFunc(s.Faults, func(f scenarios.Step) bool {
				return f.Fault == "client-crash" && f.Target == string(faults.Waiter)
			})
		},
	}
	const seeds = 1000
	drawn := map[string]int{}
	l := find(t, "reentrant")
	for seed := range uint64(seeds) {
		s, err := l.Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		for name, is := range situations {
			if is(s) {
				drawn[name]++
			}
		}
	}
	for name := range situations {
		if drawn[name] < seeds/100 {
			t.Errorf("%d of %d scenarios have %s", drawn[name], seeds, name)
		}
	}
}

// TestSeedOfOtherNames: only the names of drawn scenarios have a seed.
func TestSeedOfOtherNames(t *testing.T) {
	for _, name := range []string{
		"", "failover", "generated-", "generated--1", "generated-1x", "generated-99999999999999999999",
	} {
		if seed, ok := SeedOf(name); ok {
			t.Errorf("%q has the seed %d", name, seed)
		}
	}
}
