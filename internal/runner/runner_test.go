package runner

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/locks/openable"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
	"github.com/lockchaos/lockchaos/scenarios"
)

// asClient makes this test binary a native client, as chaos client is.
const asClient = "LOCKCHAOS_TEST_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" {
		if err := client.Serve(context.Background(), requests(), os.Stdout, openable.Lookup); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(asBusyLoop) != "" {
		computeUntilEOF()
	}
	os.Exit(m.Run())
}

// asCrash is the number of requests after which the client is killed; unset: it is not.
const asCrash = "LOCKCHAOS_TEST_CRASH"

// requests is standard input, up to the crash.
func requests() io.Reader {
	left, err := strconv.Atoi(os.Getenv(asCrash))
	if err != nil {
		return os.Stdin
	}
	return &mortal{bufio.NewReader(os.Stdin), left}
}

// mortal kills this process instead of reading more than left lines.
type mortal struct {
	in   *bufio.Reader
	left int
}

func (m *mortal) Read(p []byte) (int, error) {
	n, err := m.in.Read(p[:1])
	if n == 1 && p[0] == '\n' {
		if m.left--; m.left < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	return n, err
}

// clientCommand is the command of a native client.
func clientCommand(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"env", asClient + "=1", self}
}

func needRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("NOT RUN: needs redis-server on the PATH (Debian, Ubuntu: apt-get install redis-server)")
	}
}

func load(t *testing.T, name string, set ...string) scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Load(name, scenarios.Sets(set)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func options(t *testing.T, s scenarios.Scenario) Options {
	t.Helper()
	s.InitTimeout = cmp.Or(s.InitTimeout, 5*time.Minute) // a program takes long to start on a busy machine
	return Options{
		Scenario: s, Seed: 1, Backend: servers.Process().New(backend.Options{Client: clientCommand(t)}), Out: t.TempDir(),
		Version: "test",
	}
}

// Scenarios run in parallel, because they mostly wait; not more than two processors can take.
const (
	scenariosAtOnce = 2
	manyClients     = 50
)

// onRealServers are the scenarios that the tests run on real servers, one of each family, and with -short or the race
// detector one of each topology. All scenarios run in virtual time (TestScenariosEndOnSimAsTheyExpect), and make
// scenarios runs all of them on real servers, several times.
func onRealServers() []string {
	names := []string{"failover", "power-loss-single", "redlock-two-masters-down", "cluster-failover"}
	if race.Short() {
		return names
	}
	return append(names, "split-brain", "gc-pause", "fenced-pause", "clock-jump", "reply-lost-acquire", "key-deleted",
		"setnx-crash", "redlock-restart-empty")
}

// TestScenarios runs scenarios on real servers and compares each with its expectation.
//
// An election of real servers may take longer than the holds of a run: package rerun says which runs are repeated.
func TestScenarios(t *testing.T) {
	needRedis(t)
	turns := make(chan struct{}, scenariosAtOnce)
	var all sync.WaitGroup
	for _, name := range onRealServers() {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			t.Run(name, func(t *testing.T) { runScenario(t, load(t, name)) })
		})
	}
	all.Wait()
}

func runScenario(t *testing.T, s scenarios.Scenario) {
	if why := servers.Process().Missing(s); why != "" {
		t.Skip("NOT RUN: ", why)
	}
	if s.Workload.Clients > manyClients {
		t.Skipf("NOT RUN: %d processes beside the other tests; make scenarios runs it", s.Workload.Clients)
	}
	for try := 1; ; try++ {
		out, err := Run(context.Background(), options(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if out.Manifest.State != rundir.Complete {
			t.Errorf("state %s", out.Manifest.State)
		}
		wrong := expect.Unexpected(out.Judgement, out.Manifest.Expect)
		if len(wrong) == 0 {
			return
		}
		if !rerun.Again(t, try, out.Dir.Path) {
			t.Fatalf("%s\n%s", out.Judgement.Sentence, strings.Join(wrong, "\n"))
		}
	}
}
