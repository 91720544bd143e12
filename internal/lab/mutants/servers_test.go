package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
)

// TestRunsOnServers: violations of runs on real servers are found, and runs that could not be completed are counted.
func TestRunsOnServers(t *testing.T) {
	targets, err := allTargets()
	if err != nil {
		t.Fatal(err)
	}
	of := targets.Of(Row{Kind: etcd})[0]
	for _, c := range []struct {
		name, state          string
		findings, failed, of int
	}{
		{"unsafe", "complete", 1, 0, 1}, {"broken off", "broken", 0, 2, 2},
	} {
		path := filepath.Join(t.TempDir(), "chaos")
		script := fmt.Sprintf(`#!/bin/sh
[ "$1 $5 $6" = "run --scenario %s" ] && [ "$LOCKCHAOS_MUTANT" = x ] || exit 64
echo '{"state":"%s","judgement":{"verdict":"unsafe","results":[{"property":"exclusion","outcome":"violated",
	"violations":[{"rule":"one holder"}]}]}}'
exit 1
`, of.Scenario, c.state)
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		m := &Measurer{Targets: targets, First: 1, baseline: map[string]baseline{
			of.String(): func() (map[checker.Property]bool, error) { return nil, nil },
		}}
		var got Result
		err := m.explore(t.Context(), program{path: path, env: Switch + "=x"}, of, 1, 2, &got)
		if err != nil || got.Convicted != (c.findings > 0) || got.Failed != c.failed || got.Runs != c.of {
			t.Errorf("%s: %+v, error %v", c.name, got, err)
		}
		if c.findings > 0 && got.Property != checker.Exclusion {
			t.Errorf("%s: convicted by %s", c.name, got.Property)
		}
	}
}

// TestDrawnForZooKeeper: scenarios are drawn for the locks on ZooKeeper, and no row of etcd is in a sample.
func TestDrawnForZooKeeper(t *testing.T) {
	targets, err := allTargets()
	if err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for _, target := range targets.Of(Row{Kind: zooKeeper}) {
		if target.drawn != nil {
			drawn++
		}
	}
	if want := len(locksOf(zooKeeper)); drawn != want {
		t.Errorf("scenarios are drawn for %d locks on ZooKeeper, want %d", drawn, want)
	}
	for _, r := range Draw(rowsOf(t), "a commit", 1) {
		if r.OnServers() {
			t.Errorf("%s is in a sample, and needs servers", r.Name)
		}
	}
}
