package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
)

// TestClientsShareProcesses: each of five clients in two processes has grants.
func TestClientsShareProcesses(t *testing.T) {
	needRedis(t)
	s := load(t, "contention", "workload.clients=5", "workload.per_process=3", "workload.ramp=20ms", "duration=1500ms",
		"workload.keys=5", "expect=null")
	for try := 1; ; try++ {
		out, err := Run(context.Background(), options(t, s))
		if err != nil {
			t.Fatal(err)
		}
		grants := grantsOfShared(t, out)
		if len(grants) == 5 && out.Judgement.Verdict == checker.Safe {
			break
		}
		if !rerun.Again(t, try, out.Dir.Path) {
			t.Fatalf("%s: grants by client: %v", out.Judgement.Sentence, grants)
		}
	}
	noChildren(t)
}

// grantsOfShared counts the grants of each client, after a look at the logs of their two processes.
func grantsOfShared(t *testing.T, out *Outcome) map[int]int {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(out.Dir.File(rundir.LogsDir), "client-*.log"))
	if err != nil || len(logs) != 2 {
		t.Errorf("%d processes have a log, want 2: %v", len(logs), logs)
	}
	h, err := history.ReadFile(out.Dir.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	h.Clients = out.Manifest.Clients
	grants := map[int]int{}
	for _, span := range h.Spans {
		if span.Op == history.OpAcquire && span.Outcome == history.OK {
			grants[span.Process.Client(h.Clients)]++
		}
	}
	return grants
}

// TestSharedProcessThatCannotStart: the run reports why.
func TestSharedProcessThatCannotStart(t *testing.T) {
	needRedis(t)
	o := options(t, load(t, "contention", "workload.clients=4", "workload.per_process=2"))
	o.Backend = servers.Process().New(backend.Options{Client: []string{filepath.Join(t.TempDir(), "nothing")}})
	if _, err := Run(context.Background(), o); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Run: %v", err)
	}
	noChildren(t)
}
