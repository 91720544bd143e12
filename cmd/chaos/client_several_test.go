package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestClientsOfOneProcess: a scenario that puts several clients into one process is not for a client that ignores the
// field client. It is for one that hosts several.
func TestClientsOfOneProcess(t *testing.T) {
	needRedis(t)
	scenario := writeScenario(t, "name: x\ntopology: {kind: single}\nlock: mutex\nduration: 2s\n"+
		"workload: {clients: 4, per_process: 2, keys: 1, hold: 20ms, lease: 5s, wait: 2s}\n")
	single := "python3 ../../examples/client.py"
	out := t.TempDir()
	code, stdout, stderr := chaos("run", "--scenario", scenario, "--out", out, "--lock", "exec:"+single)
	const why = "scenario is not for this client"
	if code != exitEnvironment || !strings.Contains(stderr, why) {
		t.Errorf("a client that ignores the field: exit code %d\n%s", code, stderr)
	}
	notRun(t, filepath.Join(out, "latest"), stdout, why)
	code, stdout, stderr = chaos("run", "--scenario", scenario, "--out", t.TempDir(),
		"--lock", "exec:python3 testdata/hosts_several.py "+single)
	if code != exitSafe {
		t.Errorf("a client that hosts several: exit code %d\n%s%s", code, stdout, stderr)
	}
}
