package runner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/promise"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/simulated"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/locks/zookeeper"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/scenarios"
)

// newSim is a simulation that is able to open every lock of its topologies.
func newSim() *simulated.Sim { return simulated.New(backend.Options{Open: zookeeper.Opens}) }

// simulate runs s on simulated servers and returns the outcome and the history's bytes.
func simulate(
	t *testing.T, s scenarios.Scenario, seed uint64, variation scenarios.Variation,
) (*Outcome, []byte) {
	t.Helper()
	out, err := Run(context.Background(), Options{
		Scenario: s, Seed: seed, Variation: variation, Backend: newSim(), Out: t.TempDir(), Version: "test",
	})
	// go-redis keeps timers of one bubble in pools, which must not reach the next.
	runtime.GC()
	runtime.GC()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Dir.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	return out, text
}

// maxRepeated is up to how many clients a run is repeated: runs with a thousand take as long as all others together.
const maxRepeated = 50

var everyScenario = flag.Bool("every", false, "simulate every scenario, in the short form of the test too")

// varied are the scenarios of which each has a lock on a kind of servers, an option of a lock, a fault or a workload
// that none before it has.
func varied(t *testing.T) (names []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, name := range scenarios.Names() {
		s, before := load(t, name), len(seen)
		seen["workload "+s.Workload.Kind] = true
		clients := s.Workload.Defaults().Clients
		for i := range clients {
			lock, options := s.LockOf(i, clients)
			seen["lock "+lock+" on "+s.Topology.Kind] = true
			for option := range options {
				seen["option "+option] = true
			}
		}
		for _, step := range s.Faults {
			seen["fault "+step.Fault+" when "+step.When] = true
			if step.Random != nil {
				for _, fault := range step.Random.Of {
					seen["random fault "+fault] = true
				}
			}
		}
		if len(seen) > before {
			names = append(names, name)
		}
	}
	return names
}

// TestScenariosEndOnSimAsTheyExpect: each scenario has the verdict that it has on real servers (TestScenarios), and the
// same history when it is repeated with another number of processors. The short form runs the varied scenarios once,
// unless -every is set, and TestSameSeedSameRun repeats runs.
func TestScenariosEndOnSimAsTheyExpect(t *testing.T) {
	names := scenarios.Names()
	if race.Short() && !*everyScenario {
		all := len(names)
		names = varied(t)
		t.Logf("%d of %d scenarios run in the short form", len(names), all)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			s := load(t, name)
			if s.Workload.Clients > 2*manyClients { // a thousand take a minute with the race detector, and show no more
				s = load(t, name, fmt.Sprintf("workload.clients=%d", 2*manyClients))
			}
			if why := simulated.Spec().Missing(s); why != "" {
				t.Skipf("NOT RUN: %s", why)
			}
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			out, first := simulate(t, s, 1, 0)
			if out.Manifest.Clients <= maxRepeated && !race.Short() {
				runtime.GOMAXPROCS(2)
				_, again := simulate(t, s, 1, 0)
				equal(t, first, again)
			}
			for _, wrong := range expect.Unexpected(out.Judgement, out.Manifest.Expect) {
				t.Errorf("%s (%s)", wrong, out.Judgement.Sentence)
			}
		})
	}
}

// TestForeignDataOfAPausedServer: foreign data that cannot be removed for a while, or not at all, convict no lock.
func TestForeignDataOfAPausedServer(t *testing.T) {
	for name, c := range map[string]struct {
		other  string
		healed bool
	}{
		"paused while they are removed": {"fault: pause-node, for: 300ms", true},
		"paused for too long":           {"fault: pause-node, for: 30s", false},
		"down until the end":            {"fault: kill", false},
	} {
		t.Run(name, func(t *testing.T) {
			out, text := simulate(t, load(t, "foreign-data", "faults=[{after: 800ms, fault: foreign-data, for: 1s}, "+
				"{after: 1700ms, target: master, "+c.other+"}]"), 1, 0)
			if v := out.Judgement.Verdict; v != checker.Safe && v != checker.Inconclusive {
				t.Errorf("%s: %s", v, out.Judgement.Sentence)
			}
			healed := strings.Contains(string(text), "the data are removed")
			failed := strings.Contains(string(text), "removing foreign data: ")
			probed := strings.Contains(string(text), `"f":"probe"`)
			if healed != c.healed || failed == c.healed || probed != c.healed {
				t.Errorf("healed %v, failed %v, probed %v", healed, failed, probed)
			}
		})
	}
}

// equal fails t at the first line in which two histories differ.
func equal(t *testing.T, first, again []byte) {
	t.Helper()
	if n, a, b := explore.FirstDifference(string(first), string(again)); n > 0 {
		t.Fatalf("the same seed made another history; line %d was\n%s\nand is\n%s", n, a, b)
	}
}

// TestUnseededRandomnessIsFound: a lock that is not deterministic has another history each time, and the first event
// that differs is found.
func TestUnseededRandomnessIsFound(t *testing.T) {
	row, err := locks.Lookup("set-nx-px")
	if err != nil {
		t.Fatal(err)
	}
	open := row.Open
	row.Open = func(s client.Setup, notify func(client.Reply)) (client.Locker, error) {
		s.Seed = rand.Uint64()
		return open(s, notify)
	}
	var texts [2]string
	for i := range texts {
		out, err := Run(context.Background(), Options{
			Scenario: load(t, "redlock-contention", "topology={kind: single}", "lock=set-nx-px"), Seed: 1, Lock: &row,
			Backend: newSim(), Out: t.TempDir(), Version: "test",
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out.Dir.File(rundir.HistoryFile))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
		runtime.GC()
		runtime.GC()
	}
	n, a, b := explore.FirstDifference(texts[0], texts[1])
	if n == 0 || a == b || !strings.Contains(a, `"f":"`) {
		t.Errorf("line %d:\n%s\n%s", n, a, b)
	}
}

// TestStalledLockIsNamed: one lock waits for a mutex that a goroutine outside holds, the other reads from a pipe. The
// watchdog names the function; the test then lets both return.
func TestStalledLockIsNamed(t *testing.T) {
	for name, wait := range waysToWait(t) {
		t.Run(name, func(t *testing.T) {
			row, err := locks.Lookup("reentrant")
			if err != nil {
				t.Fatal(err)
			}
			open := row.Open
			row.Open = func(s client.Setup, notify func(client.Reply)) (client.Locker, error) {
				l, err := open(s, notify)
				return slow{l, wait.begin}, err
			}
			var mu sync.Mutex // the watchdog may report once more while the run ends
			said := ""
			b := simulated.New(backend.Options{Stalled: func(advice string) {
				mu.Lock()
				defer mu.Unlock()
				if said = advice; strings.Contains(advice, "slow.Acquire") { // else the machine was busy
					wait.end()
				}
			}})
			b.Limit = 500 * time.Millisecond
			_, err = Run(context.Background(), Options{
				Scenario: load(t, "gc-pause", "faults=[]", "duration=100ms", "expect=null"), Seed: 1, Lock: &row,
				Backend: b, InMemory: true, Version: "test",
			})
			runtime.GC()
			runtime.GC()
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, want := range []string{"virtual time has stalled", "slow.Acquire", wait.state, "real input or output"} {
				if !strings.Contains(said, want) {
					t.Errorf("the advice lacks %q:\n%s", want, said)
				}
			}
		})
	}
}

// slow is a lock that calls before in each Acquire.
type slow struct {
	client.Locker
	before func()
}

func (s slow) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	s.before()
	return s.Locker.Acquire(ctx, a)
}

// wayToWait stalls virtual time until end is called.
type wayToWait struct {
	begin, end func()
	state      string // as the runtime names it
}

func waysToWait(t *testing.T) map[string]wayToWait {
	t.Helper()
	var mu sync.Mutex
	mu.Lock()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	var unlock, closed sync.Once
	return map[string]wayToWait{
		"mutex": {
			begin: func() { mu.Lock(); defer mu.Unlock() },
			end:   func() { unlock.Do(mu.Unlock) }, state: "sync.Mutex.Lock",
		},
		"input": {
			begin: func() { _, _ = r.Read(make([]byte, 1)) },
			end:   func() { closed.Do(func() { _ = w.Close() }) }, state: "IO wait",
		},
	}
}

func TestSimulationIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, err := Run(ctx, Options{
		Scenario: load(t, "failover", "duration=1h"), Seed: 1, Backend: newSim(), Out: t.TempDir(), Version: "test",
		Watch: func(s Status) {
			if s.Grants > 0 {
				cancel()
			}
		},
	})
	if !errors.Is(err, ErrInterrupted) || out.Manifest.State != rundir.Interrupted {
		t.Fatalf("Run: %v, want ErrInterrupted", err)
	}
}

func TestClientProgramsAreNotSimulated(t *testing.T) {
	if why := simulated.Spec().Missing(load(t, "failover", "lock=exec:true")); why == "" {
		t.Error("a client that is a program can run on backend sim")
	}
}

// TestLocksOfOneRun: clients with two locks are judged together: the DEL of one of them frees the lock of another. What
// only one of the locks can do is not requested.
func TestLocksOfOneRun(t *testing.T) {
	s := load(t, "mixed-libraries", "locks[0].lock=set-nx-ex", "workload.hold=600ms", "workload.lease=1s", "expect=null",
		"faults=[{when: acquired, delay: 10ms, fault: pause-client, target: \"client:5\", for: 3s}]")
	out, _ := simulate(t, s, 7, 0)
	if out.Judgement.Verdict != checker.Unsafe || out.Judgement.Class != checker.BrokenPromise {
		t.Errorf("%s: %s", out.Judgement.Verdict, out.Judgement.Sentence)
	}
	m := out.Manifest
	if m.Lock != "mutex + set-nx-ex" || m.Can.Has(promise.ReportsLoss) || !m.Can.Has(promise.Try) {
		t.Errorf("lock %q can %s", m.Lock, m.Can)
	}
}

// TestPermitsOfAReplacedMaster: keys that a master keeps after a failover has replaced it are not left behind.
func TestPermitsOfAReplacedMaster(t *testing.T) {
	out, text := simulate(t, load(t, "skewed-replica", "lock=semaphore"), 7, 0)
	leak := out.Judgement.Result(checker.Leak)
	if leak.Outcome == checker.Violated || !strings.Contains(string(text), `"f":"probe"`) {
		t.Errorf("%s: %s", leak.Outcome, leak.Summary)
	}
}

// TestReleaseThatReplicasLack: keys that replicas have not yet removed when a run ends were not left behind.
func TestReleaseThatReplicasLack(t *testing.T) {
	s := load(t, "sentinel-minority", "lock=setnx-del-unchecked", "options={}")
	out, text := simulate(t, s, 239168, 0)
	leak := out.Judgement.Result(checker.Leak)
	if leak.Outcome == checker.Violated || !strings.Contains(string(text), `"f":"leftover"`) {
		t.Errorf("%s: %s", leak.Outcome, leak.Summary)
	}
}

// TestNoSamplesAfterClosing: a lock on ZooKeeper gives up its holds when its client is closed, and no sample shows that
// as a broken promise.
func TestNoSamplesAfterClosing(t *testing.T) {
	s := load(t, "zk-leader-paused", "workload.kind=waiters", "workload.hold=1ms", "workload.think=2s")
	if out, _ := simulate(t, s, 865772, 0); out.Judgement.Verdict == checker.Unsafe {
		t.Error(out.Judgement.Sentence)
	}
}

// TestWaitEndsWhileSlotMigrates: a waiter whose time ends between two requests of one attempt leaves the queue. In
// these runs its time ends after the request that queues it. Before, it stayed first in the queue until its heartbeat
// expired, and nobody was granted the lock.
func TestWaitEndsWhileSlotMigrates(t *testing.T) {
	s := load(t, "mixed-migration", "lock=multi-kinds", "options={replicas: all}", "expect=safe", "duration=1029ms",
		"workload={kind: mixed, clients: 3, keys: 1, hold: 40ms, think: 10ms, lease: 1s, wait: 500ms, "+
			"sequences: 'plain, readers, nested'}",
		"faults=[{after: 187ms, when: releasing, delay: 59ms, fault: slot-migration, target: n3, for: 700ms, optional: true}]")
	for _, seed := range []uint64{400066, 400075, 400090} {
		if out, _ := simulate(t, s, seed, 0); out.Judgement.Verdict != checker.Safe {
			t.Errorf("seed %d: %s", seed, out.Judgement.Sentence)
		}
	}
}
