package runner

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// TestInterruptedInEachPhase: in whatever phase a run is interrupted, its history is judged and its children exit.
func TestInterruptedInEachPhase(t *testing.T) {
	needRedis(t)
	for _, phase := range []string{"start", "run", "heal"} {
		t.Run(phase, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			duration := "duration=2s"
			if phase == "run" { // until the first grant
				duration = "duration=1m"
			}
			o := options(t, load(t, "failover", duration))
			o.Watch = func(s Status) {
				if s.Phase == phase && (phase != "run" || s.Grants > 0) {
					cancel()
				}
			}
			out, err := Run(ctx, o)
			if !errors.Is(err, ErrInterrupted) {
				t.Fatalf("Run: %v, want ErrInterrupted", err)
			}
			if out.Manifest.State != rundir.Interrupted {
				t.Errorf("state %q", out.Manifest.State)
			}
			if out.Judgement.Verdict == checker.Safe {
				t.Error("an interrupted run is safe")
			}
			for _, name := range []string{rundir.HistoryFile, rundir.WitnessFile, rundir.VerdictFile} {
				if !out.Dir.Has(name) {
					t.Errorf("there is no %s", name)
				}
			}
			noChildren(t)
		})
	}
}

// noChildren fails t if this process has children.
func noChildren(t *testing.T) {
	t.Helper()
	out, err := exec.Command("pgrep", "-a", "-P", strconv.Itoa(os.Getpid()), "redis-server|runner.test|python3").Output()
	if err == nil && len(out) > 0 {
		t.Errorf("children are left:\n%s", out)
	}
}

// TestEveryFaultHeals: every injected fault has a heal event.
func TestEveryFaultHeals(t *testing.T) {
	needRedis(t)
	s := load(t, "failover", untilDone, `faults=[{fault: replication-hold}, {when: acquired, fault: pause-client}, `+
		`{fault: pause-node, target: n2}, {fault: kill, target: n3}]`)
	out := runUntil(t, options(t, s), func(text string) bool {
		return strings.Count(text, `"phase":"inject"`) == 4
	})
	h, err := history.ReadFile(out.Dir.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	healed := map[int]string{}
	injected := 0
	for _, f := range h.Faults {
		switch f.Phase {
		case history.Healed:
			healed[f.ID] = f.Detail
		case history.Injected:
			injected++
		}
	}
	if injected != 4 || len(healed) != 4 {
		t.Errorf("injected %d, healed %d, want 4 and 4: %v", injected, len(healed), h.Faults)
	}
	for id, how := range healed { // in any order
		if strings.Contains(how, "healing:") || strings.Contains(how, "not healed") {
			t.Errorf("fault %d: %s", id, how)
		}
	}
}

// TestClientThatDies: the crash of a client is recorded.
func TestClientThatDies(t *testing.T) {
	needRedis(t)
	// The run ends when both are dead: the second dies after the lease of the first has expired.
	s := load(t, "gc-pause", "faults=[]", "duration=1m", "expect=null", "workload.clients=2", "workload.hold=20ms",
		"workload.lease=500ms")
	o := options(t, s)
	// It is set up, acquires the lock, works, and dies when it should release.
	o.Backend = servers.Process().New(backend.Options{Client: append([]string{"env", asCrash + "=3"}, clientCommand(t)...)})
	out, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.ReadFile(out.Dir.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	crashes := 0
	for _, n := range h.Notices {
		if n.F == history.Crash {
			crashes++
		}
	}
	if crashes != 2 {
		t.Errorf("%d crashes recorded, want one for each of 2 clients", crashes)
	}
	noChildren(t)
}

// TestKilledHarness: a harness that is killed leaves no process, and a history that can be judged.
func TestKilledHarness(t *testing.T) {
	needRedis(t)
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHarnessToBeKilled$", "-test.v")
	// What it leaves is removed with the test.
	cmd.Env = append(os.Environ(), "LOCKCHAOS_TEST_KILL_ME="+dir, "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "granted") {
	}
	children := childrenOf(t, cmd.Process.Pid)
	if len(children) < 8 {
		t.Errorf("only %d children: %v", len(children), children)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	deadline := time.Now().Add(20 * time.Second)
	for _, pid := range children {
		for s, err := child.Stat(pid); err == nil && s.Alive(); s, err = child.Stat(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d outlived the harness", pid)
			}
		}
	}
	run, err := rundir.Open(filepath.Join(dir, "failover", rundir.Latest))
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.ReadFile(run.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	j := checker.Judge(h, checker.Options{})
	if j.Spans == 0 || j.Sentence == "" {
		t.Errorf("the judgement of a killed run is empty: %+v", j)
	}
}

// TestHarnessToBeKilled is the program of TestKilledHarness.
func TestHarnessToBeKilled(t *testing.T) {
	dir := os.Getenv("LOCKCHAOS_TEST_KILL_ME")
	if dir == "" {
		t.Skip("only as the child of TestKilledHarness, which runs it")
	}
	o := options(t, load(t, "failover", "duration=2m")) // it is killed long before
	o.Out = dir
	o.Watch = func(s Status) {
		if s.Grants > 0 {
			os.Stdout.WriteString("granted\n")
		}
	}
	_, _ = Run(context.Background(), o)
}

func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	var pids []int
	for _, word := range strings.Fields(string(out)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, n)
	}
	return pids
}
