package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/suite"
)

// TestClientsOfOneProcess: a scenario that puts several clients into one process is not for a client that ignores the
// field client. It is for a client that hosts several.
func TestClientsOfOneProcess(t *testing.T) {
	needRedis(t)
	scenario := writeScenario(t, "name: x\ntopology: {kind: single}\nlock: mutex\nduration: 2s\ninit_timeout: 2m\n"+
		"workload: {clients: 4, per_process: 2, keys: 1, hold: 20ms, lease: 5s, wait: 2s}\n")
	single := "python3 ../../examples/client.py"
	out := t.TempDir()
	code, stdout, stderr := chaos("run", "--scenario", scenario, "--out", out, "--lock", "exec:"+single)
	const why = "scenario is not for this client"
	if code != exitEnvironment || !strings.Contains(stderr, why) {
		t.Errorf("a client that ignores the field: exit code %d\n%s", code, stderr)
	}
	notRun(t, filepath.Join(out, "latest"), stdout, why)
	realRun(t, exitSafe, "", "--scenario", scenario, "--lock", "exec:python3 testdata/hosts_several.py "+single)
}

// TestClientWithoutAPromise: a scenario whose workload needs a promise that a program does not state ends before it
// begins, and a suite skips it. A scenario that needs none runs.
func TestClientWithoutAPromise(t *testing.T) {
	needRedis(t)
	const lock = "exec:python3 ../../examples/client.py"
	out := t.TempDir()
	code, stdout, stderr := chaos("run", "--scenario", "readers-writer-pause", "--out", out, "--lock", lock)
	const why = "scenario is not for this client: workload readers-writer needs a lock that promises read-write"
	if code != exitEnvironment || !strings.Contains(stderr, why) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	notRun(t, filepath.Join(out, "latest"), stdout, why)
	fits := writeScenario(t, "name: fits\ntopology: {kind: single}\nlock: mutex\nduration: 1s\nexpect: safe\n"+
		"workload: {clients: 3, keys: 1, hold: 20ms, lease: 5s, wait: 2s}\n")
	code, stdout, stderr = chaos("suite", "readers-writer-pause", fits, "--lock", lock, "--backend", "process", "--json",
		"--retry", "inconclusive=3", "--out", t.TempDir())
	var got suite.Suite
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitSafe || len(got.Rows) != 2 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	for _, r := range got.Rows {
		want := map[string]suite.Outcome{"readers-writer-pause": suite.Skipped, "fits": suite.AsExpected}[r.Scenario]
		if skipped := strings.HasSuffix(strings.Join(r.Why, "; "), why); r.Outcome != want || skipped != (want == suite.Skipped) {
			t.Errorf("%+v", r)
		}
	}
}
