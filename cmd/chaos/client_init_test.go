package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// notRun checks that every format says that a run was not run, and why, and says nothing about properties of its lock.
func notRun(t *testing.T, dir, stdout, why string) {
	t.Helper()
	texts := map[string]string{"stdout": stdout, "verdict.json": readFile(t, filepath.Join(dir, "verdict.json"))}
	for _, name := range []string{"html", "text", "json", "junit", "markdown", "openmetrics"} {
		_, texts[name], _ = chaos("report", dir, "--format", name)
	}
	_, texts["check"], _ = chaos("check", dir)
	for name, text := range texts {
		text = strings.Join(strings.Fields(text), " ")
		if !strings.Contains(strings.ToLower(text), "not run") || name != "openmetrics" && !strings.Contains(text, why) {
			t.Errorf("%s does not say that nothing ran, and why (%s):\n%s", name, why, text)
		}
		for _, word := range []string{"INCONCLUSIVE", "too little", "more clients", "got not-applicable", "as the scenario"} {
			if strings.Contains(text, word) {
				t.Errorf("%s says %q", name, word)
			}
		}
	}
}

// TestClientThatCannotBeSetUp: the error has the end and the last output of the client, and the exit code is the
// environment's.
func TestClientThatCannotBeSetUp(t *testing.T) {
	needRedis(t)
	scenario := writeScenario(t, "name: x\ntopology: {kind: single}\nlock: reentrant\nduration: 1s\n"+
		"workload: {clients: 1}\ninit_timeout: 400ms\n")
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"exits":   {`echo one >&2; echo 'no module redis' >&2; exit 3`, []string{"exit status 3", `"no module redis"`}},
		"silent":  {`exec sleep 600`, []string{"did not reply in time", "still running"}},
		"garbage": {`echo hello; exec sleep 600`, []string{"violated the protocol", "still running"}},
		"refuses": {`read line; echo '{"id":1,"type":"fail","code":"setup","error":"wrong password"}'; exec sleep 600`,
			[]string{"replied fail to init", "wrong password"}},
		"refuses without a code": {`read line; echo '{"id":1,"type":"fail","error":"wrong password"}'; exec sleep 600`,
			[]string{"replied fail to init: wrong password"}},
	} {
		path := writeScenario(t, c.script)
		out := t.TempDir()
		args := []string{"run", "--scenario", scenario, "--out", out, "--lock", "exec:sh " + path}
		if name != "silent" {
			args = append(args, "--init-timeout", "1m")
		}
		code, stdout, stderr := chaos(args...)
		if code != exitEnvironment {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: no %q in:\n%s", name, want, stderr)
			}
		}
		notRun(t, filepath.Join(out, "latest"), stdout, c.want[0])
	}
	if code, _, stderr := chaos("run", "--scenario", scenario, "--dry-run", "--init-timeout", "-1s"); code != exitUsage ||
		!strings.Contains(stderr, "--init-timeout -1s: init_timeout is a duration") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
