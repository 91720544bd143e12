package docker

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

var (
	hostN1 = process.Host{I: 1}
	quorum = cluster.Topology{Kind: cluster.Quorum, Masters: 3}
)

// TestSweepOfADeadRun: a run that was killed has left a ledger; a sweep removes its containers and network, and no
// other run's.
func TestSweepOfADeadRun(t *testing.T) {
	needEngine(t)
	t.Setenv("TMPDIR", t.TempDir())
	dead, err := ledger.Open("dead")
	must(t, err)
	alive, err := ledger.Open("alive")
	must(t, err)
	defer alive.Close()
	other := up(t, cluster.Topology{Kind: cluster.Single}, alive)
	c := up(t, quorum, dead)
	run := dead.Run()
	if other.launcher.run != alive.Run() || c.launcher.run != run {
		t.Fatalf("runs %s and %s", other.launcher.run, c.launcher.run)
	}
	dead.Keep()
	must(t, dead.Close()) // as when its run is killed
	report, err := ledger.Sweep(t.Context(), Remove)
	must(t, err)
	if len(report.Swept) != 1 || report.Swept[0].Run != run || len(report.Swept[0].Failed) > 0 ||
		len(report.Swept[0].Containers) != 4 || !slices.Equal(report.Running, []string{alive.Run()}) {
		t.Errorf("report %+v", report)
	}
	checkRemoved(t, run)
	call(t, other, 0, 1).wantReply(t, "PING", "+PONG")
	if again, err := ledger.Sweep(t.Context(), Remove); err != nil || len(again.Swept) > 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// TestSweepWithoutAnEngine: the ledger is kept for a later sweep.
func TestSweepWithoutAnEngine(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l, err := ledger.Open("dead")
	must(t, err)
	must(t, l.Engine("unix://"+t.TempDir()+"/none.sock"))
	l.Keep()
	must(t, l.Close())
	report, err := ledger.Sweep(t.Context(), Remove)
	must(t, err)
	if len(report.Swept) != 1 || len(report.Swept[0].Failed) != 1 ||
		!strings.Contains(report.Swept[0].Failed[0], "no Docker engine at") {
		t.Errorf("report %+v", report)
	}
	if _, err := os.Stat(l.Path()); err != nil {
		t.Errorf("the ledger: %v", err)
	}
}

// TestOrphans: containers whose ledger was removed are found by their labels; containers of a run without a ledger are
// not touched.
func TestOrphans(t *testing.T) {
	needEngine(t)
	t.Setenv("TMPDIR", t.TempDir())
	l, err := ledger.Open("orphan")
	must(t, err)
	defer l.Close()
	c := up(t, cluster.Topology{Kind: cluster.Single}, l)
	private := up(t, cluster.Topology{Kind: cluster.Single}, nil)
	if removed, err := RemoveOrphans(t.Context()); err != nil || len(removed) > 0 {
		t.Errorf("a live run: %v, %v", removed, err)
	}
	must(t, os.Remove(l.Path()))
	temp := os.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	if removed, err := RemoveOrphans(t.Context()); err != nil || len(removed) > 0 {
		t.Errorf("from another temporary directory: %v, %v", removed, err)
	}
	t.Setenv("TMPDIR", temp)
	removed, err := RemoveOrphans(t.Context())
	want := []string{"container " + c.launcher.run + "-n1", "network " + c.launcher.run}
	if err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %v, %v, want %v", removed, err, want)
	}
	call(t, private, 0, 1).wantReply(t, "PING", "+PONG")
	if private.launcher.servers[hostN1].id == c.launcher.servers[hostN1].id {
		t.Error("a container was reused")
	}
}
