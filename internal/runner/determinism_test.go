package runner

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/backend/simulated"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/scenarios"
)

// The flags of TestSameSeedSameRun; make determinism runs it with all scenarios.
var (
	sameRuns = flag.Int("same.runs", 0, "runs compared with the first, for each scenario and number of processors; "+
		"0: 6, and 3 in the short form of the test")
	sameOnly = flag.String("same.only", "cluster-failover,redlock-partitioned-holder,swarm,closed-acquires,hasty",
		"scenarios; all: each; hasty: the lock of TestPrioritiesFindWhatLatenciesDoNot")
	sameProcs = flag.String("same.procs", "2,8", "numbers of processors")
	sameSpin  = flag.String("same.spin", "redlock-partitioned-holder",
		"scenario of which a quarter of the runs are made beside goroutines that compute")
	sameBusy   = flag.Int("same.busy", 0, "processes that compute meanwhile")
	sameSeed   = flag.Uint64("same.seed", 1, "seed")
	sameVary   = flag.Uint64("same.variation", 1, "variation; with an odd one messages arrive by priorities")
	sameBefore = flag.Int("same.before", 12, "lines of the network trace shown before the first difference")
)

// asBusyLoop makes this test binary a process that computes until its standard input ends.
const asBusyLoop = "LOCKCHAOS_TEST_BUSY"

// computeUntilEOF keeps a processor busy and ends the process with its standard input.
func computeUntilEOF() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for n := uint64(1); ; n *= 6364136223846793005 {
		if n == 0 { // never: the factor is odd
			return
		}
	}
}

// startBusyProcesses starts n processes that compute until the test ends.
func startBusyProcesses(t *testing.T, n int) {
	t.Helper()
	for range n {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), asBusyLoop+"=1", "GOMAXPROCS=2")
		in, err := c.StdinPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close(); _ = c.Wait() })
	}
}

// spin keeps the processors busy, in this process, until stop is called.
func spin() (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for n := uint64(1); ; n *= 6364136223846793005 {
				select {
				case <-done:
					return
				default:
				}
				if n%64 == 1 { // otherwise each switch to another goroutine takes ten milliseconds
					runtime.Gosched()
				}
			}
		})
	}
	return func() { close(done); all.Wait() }
}

// traced has the compared parts of a run.
type traced struct{ history, network string }

// tracedRun makes the run of o.
func tracedRun(t *testing.T, o Options) traced {
	t.Helper()
	var network strings.Builder
	b := newSim()
	b.Trace = &network
	o.Backend, o.InMemory, o.Version = b, true, "test"
	out, err := Run(context.Background(), o)
	runtime.GC() // see simulate
	runtime.GC()
	if err != nil {
		t.Fatal(err)
	}
	return traced{string(out.History), network.String()}
}

// report fails t with the first differences between r and another run.
func (r traced) report(t *testing.T, other traced) {
	t.Helper()
	if n, a, b := explore.FirstDifference(r.history, other.history); n > 0 {
		t.Errorf("line %d of the history:\n%s\n%s", n, a, b)
	}
	n, a, b := explore.FirstDifference(r.network, other.network)
	if n == 0 {
		return
	}
	lines := strings.Split(r.network, "\n")
	t.Errorf("line %d of the network trace, after\n%s\n\n%s\n%s",
		n, strings.Join(lines[max(0, n-1-*sameBefore):n-1], "\n"), a, b)
}

// sameOptions are the options of a run of the scenario of that name, or of [hasty].
func sameOptions(t *testing.T, name string) Options {
	t.Helper()
	o := Options{Seed: *sameSeed, Variation: scenarios.Variation(*sameVary)}
	if name == "hasty" {
		o.Scenario, o.Lock = hastyScenario(t), hastyRow()
		return o
	}
	if o.Scenario = load(t, name); o.Scenario.Workload.Clients > 2*manyClients {
		o.Scenario = load(t, name, fmt.Sprintf("workload.clients=%d", 2*manyClients))
	}
	return o
}

// repetitions are the runs that are compared with the first.
func repetitions() int {
	switch {
	case *sameRuns > 0:
		return *sameRuns
	case race.Short():
		return 2
	}
	return 6
}

// differing repeats the run of o and returns how many of the runs are not the first. If beside, the last quarter is
// made beside goroutines that compute.
func differing(t *testing.T, o Options, first traced, beside bool) (n int) {
	t.Helper()
	for i := range repetitions() {
		if beside && i == repetitions()*3/4 {
			defer spin()()
		}
		if again := tracedRun(t, o); again != first {
			n++
			first.report(t, again)
		}
	}
	return n
}

// TestSameSeedSameRun repeats the runs of one seed and compares their histories and every byte on the network. Another
// seed and another variation make other runs.
func TestSameSeedSameRun(t *testing.T) {
	names := strings.Split(*sameOnly, ",")
	if *sameOnly == "all" {
		names = scenarios.Names()
	}
	startBusyProcesses(t, *sameBusy)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			o := sameOptions(t, name)
			if why := simulated.Spec().Missing(o.Scenario); why != "" {
				t.Skipf("NOT RUN: %s", why)
			}
			runtime.GOMAXPROCS(1)
			first := tracedRun(t, o)
			for word := range strings.SplitSeq(*sameProcs, ",") {
				procs, err := strconv.Atoi(word)
				if err != nil {
					t.Fatal(err)
				}
				runtime.GOMAXPROCS(procs)
				began := time.Now()
				differ := differing(t, o, first, name == *sameSpin)
				t.Logf("%s: race detector %v, %d processors, %d busy processes, seed %d, variation %d: "+
					"%d of %d runs differ (%.1fs)", name, race.Enabled, procs, *sameBusy, *sameSeed, *sameVary,
					differ, repetitions(), time.Since(began).Seconds())
			}
			seed, variation := o, o
			seed.Seed++
			variation.Variation++
			for what, other := range map[string]Options{"another seed": seed, "another variation": variation} {
				if tracedRun(t, other) == first {
					t.Errorf("%s made the same run", what)
				}
			}
		})
	}
}

// Equal requests: four clients share a session with ZooKeeper, which is connected again. A request at the end:
// go-zookeeper sends or drops, at random, a request that is made after the session has ended.
func TestSessionIsDeterministic(t *testing.T) {
	for name, of := range map[string]struct {
		lock, rest string
		seed       uint64
		variation  scenarios.Variation
	}{
		"equal requests": {lock: "zk-mutex", seed: 106, rest: `
options: {session: 10s}
workload: {kind: mutex, clients: 4, keys: 2, hold: 40ms, jitter: 20ms, think: 40ms, lease: 1s, wait: 250ms,
  per_process: 4, per_instance: 4}
faults:
- {after: 1.393s, when: releasing, fault: packet-lost, target: majority, for: 200ms, optional: true}
- {after: 2.541s, when: releasing, fault: packet-lost, target: n3, for: 200ms, optional: true}
duration: 3s
`},
		"a request at the end": {lock: "zk-semaphore", seed: 202, variation: 1, rest: `
options: {session: 1s}
workload: {kind: semaphore, clients: 7, keys: 14, hold: 40ms, think: 200ms, lease: 400ms, wait: 1s, permits: 3}
faults:
- {fault: latency, target: all, amount: 2ms, optional: true}
- {after: 658ms, when: granted, delay: 53ms, fault: kill, target: master, for: 1.5s, optional: true}
- {after: 1.08s, fault: partition-one-way, target: waiter, for: 700ms, optional: true}
duration: 3s
`}} {
		t.Run(name, func(t *testing.T) {
			yaml := "name: sessions\nsummary: sessions are interrupted\ntopology: {kind: zookeeper}\nlock: " +
				of.lock + of.rest + "expect: safe\n"
			s, err := scenarios.Parse([]byte(yaml))
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Scenario: s, Seed: of.seed, Variation: of.variation}
			first := tracedRun(t, o)
			for range 5 * repetitions() {
				if again := tracedRun(t, o); again != first {
					first.report(t, again)
					t.Fatal("the runs differ")
				}
			}
		})
	}
}
