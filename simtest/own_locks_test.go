package simtest_test

import (
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/simtest"
)

// setting is a scenario with changes.
type setting struct {
	scenario string
	set      []string
}

func (s setting) config(seeds int) simtest.Config {
	return simtest.Config{Scenario: s.scenario, Set: s.set, Seeds: seeds}
}

func contention(set ...string) setting {
	return setting{"contention", append(set, "workload.clients=5")}
}

// settings are where the locks of each kind are tested.
func settings(k string) []setting {
	read, pool := "workload.kind=readers-writer", "workload.kind=semaphore"
	switch k {
	case "plain":
		return []setting{contention(), {"setnx-crash", nil}, {"swarm-single", nil}}
	case "watchdog":
		return []setting{{"stuck-holder", nil}, {"watchdog-dead-client", nil}, contention("workload.lease=0s"),
			{"slow-disk", []string{"workload.lease=0s"}}}
	case "quorum":
		return []setting{{"redlock-contention", []string{"workload.clients=4"}}, {"redlock-two-masters-down", nil}}
	case "semaphore":
		return []setting{{"permits-dead-client", []string{"workload.lease=2s"}}, contention(pool, "workload.permits=3"),
			contention()} // the last one without permits
	case "read-write":
		return []setting{contention(read, "workload.hold=60ms"), {"setnx-crash", []string{read}}}
	}
	return []setting{contention(), {"setnx-crash", nil}}
}

func kinds() []kind {
	return []kind{plainKind, watchdogKind, quorumKind, semaphoreKind, readWriteKind, countedKind, queuedKind}
}

// TestCorrectLocks: no run of a correct lock is unsafe, and none tests too little.
func TestCorrectLocks(t *testing.T) {
	for _, k := range kinds() {
		for _, s := range settings(k.name) {
			t.Run(k.name+"/"+s.scenario, func(t *testing.T) {
				t.Parallel()
				r := simtest.Run(t, s.config(3), k.lock(""))
				for _, o := range r.Runs {
					if o.Verdict != checker.Safe {
						t.Errorf("seed %d is %s: %s", o.Seed, o.Verdict, o.Sentence)
					}
				}
			})
		}
	}
}

// TestGeneratedScenarios: without a scenario each seed has one of its own, in which a correct lock is safe; some
// convict a lock that deletes the key of others.
func TestGeneratedScenarios(t *testing.T) {
	c := simtest.Config{Seeds: 25, Topologies: []string{"single", "replicated"}}
	if r := simtest.Run(t, c, plainKind.lock("")); r.Unsafe > 0 || r.Safe < 20 {
		t.Errorf("a correct lock: %d runs safe, %d unsafe: %s", r.Safe, r.Unsafe, r.Sentence)
	}
	if r := simtest.Run(t, c, plainKind.lock("plain del")); r.Unsafe == 0 {
		t.Errorf("a lock that deletes the key of others: %d runs safe, none unsafe", r.Safe)
	}
}

// TestSeeds: some seeds in which small differences to a correct lock show: a set of readers that expires with the
// shortest of their leases, replies that are waited for too long, and a server that refuses one renewal.
func TestSeeds(t *testing.T) {
	for _, c := range []struct {
		kind kind
		seed uint64
	}{{readWriteKind, 3}, {watchdogKind, 11}, {watchdogKind, 5139}} {
		o := simtest.Run(t, simtest.Config{First: c.seed, Seeds: 1}, c.kind.lock("")).Runs[0]
		if o.Verdict != checker.Safe {
			t.Errorf("%s, seed %d is %s: %s", c.kind.name, o.Seed, o.Verdict, o.Sentence)
		}
	}
}

// TestOptionsOfScenarios: the options that a scenario has for its lock state nothing about a lock that takes its place.
func TestOptionsOfScenarios(t *testing.T) {
	for _, c := range []struct {
		scenario string // and the option that it has
		kind     kind
	}{
		{"wait-starved", plainKind},              // replicas
		{"mixed-once-replies", plainKind},        // reentry
		{"mixed-readers-writer-once", plainKind}, // reentry
		{"stuck-holder-limited", watchdogKind},   // max_hold
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			for _, o := range simtest.Run(t, simtest.Config{Scenario: c.scenario, Seeds: 4}, c.kind.lock("")).Runs {
				if o.Verdict == checker.Unsafe {
					t.Errorf("seed %d: %s", o.Seed, o.Sentence)
				}
			}
		})
	}
}

// TestPlantedBugs: each of these bugs is found by a property that it breaks.
func TestPlantedBugs(t *testing.T) {
	pool, read, crash := "workload.kind=semaphore", "workload.kind=readers-writer", setting{"setnx-crash", nil}
	outlived := contention("workload.hold=150ms", "workload.lease=100ms", "workload.wait=4s")
	several, permits := contention("workload.clients=5", "workload.hold=60ms", read),
		contention(pool, "workload.permits=3", "workload.hold=60ms")
	slow := setting{"redlock-slow-majority", []string{"workload.hold=1s", "duration=6s",
		"faults=[{after: 500ms, when: acquired, fault: slow-node, target: majority, amount: 700ms, for: 4s}]"}}
	quorum, deadHolder := setting{"redlock-contention", []string{"workload.clients=4"}},
		setting{"setnx-crash", []string{"workload.wait=2s"}}
	paused := contention("workload.lease=0s", "workload.hold=2500ms", "duration=6s",
		"faults=[{after: 500ms, when: acquired, delay: 50ms, fault: pause-client, target: holder, for: 1500ms}]")
	deadWaiter := contention("workload.hold=100ms", "duration=8s",
		"faults=[{after: 1s, when: waiting, fault: client-crash, target: waiter}]")
	brief := contention("workload.hold=94ms", "workload.jitter=10ms", "workload.lease=100ms", "duration=20s")
	findPlanted(t, []planted{
		{plainKind, "exists, then set", contention(), checker.Exclusion},
		{plainKind, "set without nx", contention(), checker.Exclusion},
		{plainKind, "no lease", crash, checker.Recovery},
		{plainKind, "lease of 1000 s", crash, checker.Recovery},
		{plainKind, "lease too short", contention("workload.hold=300ms"), checker.LeaseExclusion},
		{plainKind, "setnx, then expire", setting{"expire-lost", nil}, checker.Recovery},
		{plainKind, "validity from the reply", outlived, checker.LeaseExclusion},
		{plainKind, "plain del", setting{"plain-del", nil}, checker.LeaseExclusion},
		{plainKind, "get, then del", brief, checker.LeaseExclusion},
		{plainKind, "never releases", contention(), checker.WakeUp},
		{plainKind, "release always succeeds", outlived, checker.Honesty},
		{plainKind, "waits without end", deadHolder, checker.WakeUp},
		{plainKind, "never returns", deadHolder, checker.WakeUp},
		{watchdogKind, "reports no loss", setting{"key-deleted", []string{"workload.lease=0s"}}, checker.Honesty},
		{watchdogKind, "renews too late", setting{"stuck-holder", nil}, checker.Honesty},
		{watchdogKind, "renews what it does not own", paused, checker.LeaseExclusion},
		{watchdogKind, "takes a lost lock back", paused, checker.LeaseExclusion},
		{watchdogKind, "does not renew", setting{"stuck-holder", nil}, checker.LeaseExclusion},
		{quorumKind, "one vote", quorum, checker.Exclusion},
		{quorumKind, "two votes", quorum, checker.Exclusion},
		{quorumKind, "no validity", slow, checker.LeaseExclusion},
		{quorumKind, "no rollback", quorum, checker.WakeUp},
		{semaphoreKind, "one permit too many", permits, checker.Permits},
		{semaphoreKind, "count, then take", permits, checker.Permits},
		{semaphoreKind, "releases all", permits, checker.Permits},
		{semaphoreKind, "returns one permit", permits, checker.WakeUp},
		{semaphoreKind, "permits of the dead", setting{"permits-dead-client", []string{"workload.lease=2s"}}, checker.Recovery},
		{readWriteKind, "writer ignores readers", several, checker.Exclusion},
		{readWriteKind, "reader ignores writer", several, checker.Exclusion},
		{readWriteKind, "last reader out", several, checker.Exclusion},
		{readWriteKind, "readers never expire", setting{"setnx-crash", []string{read}}, checker.Recovery},
		{readWriteKind, "writer stays", several, checker.WakeUp},
		{countedKind, "owner not compared", contention(), checker.Exclusion},
		{countedKind, "token starts again", contention(), checker.Fencing},
		{countedKind, "token before the lock", contention(), checker.Fencing},
		{countedKind, "leaves without looking", outlived, checker.LeaseExclusion},
		{countedKind, "keeps an empty hash", contention(), checker.WakeUp},
		{queuedKind, "waits for the dead", deadWaiter, checker.Leak},
	})
}

// TestPlantedDelays: so are a lock that does not end its operations in time, and a lock that ends them with errors.
func TestPlantedDelays(t *testing.T) {
	soon := "workload.lease=500ms"
	findPlanted(t, []planted{
		{plainKind, "gives up at once", contention("workload.hold=100ms", "workload.wait=3s"), checker.WakeUp},
		{plainKind, "waits too long", contention("workload.hold=1500ms", "workload.wait=500ms", "duration=8s"), checker.WakeUp},
		{plainKind, "release takes seconds", contention("workload.lease=5s", "duration=10s"), checker.WakeUp},
		{plainKind, "release fails", contention(soon), checker.Honesty},
		{plainKind, "release by hash", contention(soon), checker.Honesty},
		{plainKind, "release of two slots", contention(soon, "topology.kind=cluster"), checker.Honesty},
		{plainKind, "blocks its only connection", contention("workload.clients=6", "workload.per_process=3",
			"workload.per_instance=3", "workload.lease=5s", "duration=10s"), checker.WakeUp},
	})
}

// planted is a bug in a lock.
type planted struct {
	kind     kind
	bug      string
	in       setting
	property checker.Property // that finds it
}

// findPlanted fails t if one of some bugs is not found in six runs.
func findPlanted(t *testing.T, bugs []planted) {
	t.Helper()
	for _, test := range bugs {
		t.Run(test.kind.name+"/"+test.bug, func(t *testing.T) {
			t.Parallel()
			c, said := test.in.config(1), ""
			for c.First = 0; c.First < 6; c.First++ {
				r := simtest.Run(t, c, test.kind.lock(test.bug))
				if r.Outcomes(test.property)[checker.Violated] > 0 {
					return
				}
				said = string(r.Runs[0].Verdict) + ": " + r.Runs[0].Sentence
			}
			t.Errorf("%s is not violated in %d runs; the last is %s", test.property, c.First, said)
		})
	}
}
