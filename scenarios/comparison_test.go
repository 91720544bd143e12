package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/testkit/golden"
)

// compared is a column of the table in docs/explanation/comparison.md.
type compared struct {
	name string
	lock string // whose name a cell leaves out
	on   []string
}

// comparison is a row of that table: for each column a scenario, or why there is none.
type comparison struct {
	what   string
	faults []string // which the scenarios inject, and no others
	cells  [5]string
}

// comparedLocks are the columns.
func comparedLocks() [5]compared {
	return [5]compared{
		{"Redis", "reentrant", []string{cluster.Single, cluster.Replicated, cluster.Sentinel}},
		{"RedLock, five masters", "redlock", []string{cluster.Quorum}},
		{"ZooKeeper, three members", "zk-mutex", []string{cluster.ZooKeeper}},
		{"etcd, three members", "etcd-mutex", []string{cluster.Etcd}},
		{"PostgreSQL", "sql-lease", []string{cluster.Postgres}},
	}
}

func comparisons() []comparison {
	const noScenario, noPower = "no scenario", "no scenario: the disks of this fault need root, which PostgreSQL refuses"
	return []comparison{
		{"the master or leader is killed", []string{"kill", "replication-hold", "failover"}, [5]string{
			"failover", "redlock-two-masters-down", "zk-failover", "etcd-failover", "sql-failover",
		}},
		{"the leader stalls and comes back", []string{"pause-node"}, [5]string{
			noScenario, noScenario, "zk-leader-paused", "etcd-leader-paused", noScenario,
		}},
		{"the holder stalls past its lease", []string{"pause-client"}, [5]string{
			"gc-pause", "redlock-fenced-pause", "zk-gc-pause", "etcd-gc-pause", "sql-fenced-pause",
		}},
		{"the holder is cut off", []string{"partition"}, [5]string{
			"partitioned-holder", "redlock-partitioned-holder", "zk-partitioned-holder", "etcd-partitioned-holder",
			"sql-partitioned-holder",
		}},
		{"servers come back with empty disks", []string{"restart-empty", "restart", "kill", "pause-node"}, [5]string{
			"master-restart-empty", "redlock-restart-empty", "zk-disks-lost",
			"no scenario: a member with an empty disk is replaced, which needs a majority",
			noScenario,
		}},
		{"power loss without fsync", []string{"power-loss", "partition", "kill"}, [5]string{
			"power-loss-single", "redlock-everysec", "zk-power-loss-unsynced", "etcd-power-loss-unsynced",
			noPower,
		}},
		{"power loss with fsync", []string{"power-loss", "partition", "kill"}, [5]string{
			noScenario, "redlock-always", "zk-power-loss", "etcd-power-loss", noPower,
		}},
		{"a reply to an acquire is lost", []string{"reply-lost", "grant-reply-lost"}, [5]string{
			"reply-lost-acquire", "redlock-reply-lost", "zk-reply-lost-acquire", "etcd-reply-lost-acquire",
			noScenario,
		}},
		{"a reply to a release is lost", []string{"reply-lost"}, [5]string{
			"reply-lost-release", noScenario, "zk-reply-lost-release", "etcd-reply-lost-release",
			noScenario,
		}},
		{"a server's clock jumps", []string{"clock-jump", "restart-empty"}, [5]string{
			"clock-jump", "redlock-clock-jump", "zk-clock-jump",
			"no scenario: the harness cannot set the clock of a Go program",
			"sql-clock-jump",
		}},
	}
}

// cell is the text of the table in one column of one row.
func (c comparison) cell(t *testing.T, column compared, text string) string {
	t.Helper()
	if strings.HasPrefix(text, "no scenario") {
		return text
	}
	s, err := Load(text)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(column.on, s.Topology.Kind) {
		t.Errorf("%s runs on topology %s, and stands in the column %q", s.Name, s.Topology.Kind, column.name)
	}
	for _, f := range s.Faults {
		if !slices.Contains(c.faults, f.Fault) {
			t.Errorf("%s injects fault %s, and stands in the row %q", s.Name, f.Fault, c.what)
		}
	}
	verdict := s.Expect.Text()
	if s.Expect.Is(checker.Unsafe) {
		verdict = "**" + verdict + "**"
	}
	if s.Expect.Except["fencing"].Outcome == "violated" {
		verdict += ", tokens not increasing"
	}
	if s.Lock != column.lock {
		verdict += ", lock `" + s.Lock + "`"
	}
	return fmt.Sprintf("%s: `chaos run --scenario %s`", verdict, s.Name)
}

// TestComparison: the table of docs/explanation/comparison.md has the verdicts that the scenarios expect, each in the
// column of its servers and the row of its faults.
func TestComparison(t *testing.T) {
	const path, begin, end = "../docs/explanation/comparison.md", "<!-- comparison: generated from the scenarios: " +
		"go test ./scenarios -run Comparison -update -->\n", "<!-- end -->"
	var want strings.Builder
	columns := comparedLocks()
	want.WriteString("| fault |")
	for _, c := range columns {
		want.WriteString(" " + c.name + " |")
	}
	want.WriteString("\n|" + strings.Repeat(" --- |", 1+len(columns)) + "\n")
	for _, row := range comparisons() {
		want.WriteString("| " + row.what + " |")
		for i, c := range columns {
			want.WriteString(" " + row.cell(t, c, row.cells[i]) + " |")
		}
		want.WriteString("\n")
	}
	golden.Block(t, path, begin, end, func(string) string { return want.String() })
}
