package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClientThatBreaksTheProtocol: the summary names the client, its output and the expected one, or how it ended, and
// does not advise more clients.
func TestClientThatBreaksTheProtocol(t *testing.T) {
	needRedis(t)
	scenario := writeScenario(t, "name: x\ntopology: {kind: single}\nlock: reentrant\nduration: 1m\n"+
		"workload: {clients: 1}\n")
	for name, c := range map[string]struct {
		second string // the client's action on its second request
		want   []string
	}{
		"garbage": {`printf 'oops \033[31mred\n'`, []string{"client 0 violated the protocol at", "output line 2",
			"expected one JSON object per line", `"oops \x1b[31mred"`}},
		"wrong id": {`echo '{"id":99,"type":"ok"}'`, []string{"client 0 violated the protocol at", "output line 2",
			"expected one of the open requests [2], got 99", `{\"id\":99`}},
		"exit": {`echo 'no module redis' >&2; exit 3`, []string{"client 0 exited unexpectedly at",
			"exit status 3", `"no module redis"`}},
	} {
		path := filepath.Join(t.TempDir(), "client.sh")
		script := "read line; echo '{\"id\":1,\"type\":\"ok\"}'; read line\n" + c.second + "\nread line\nread line\n"
		if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		out := t.TempDir()
		code, stdout, stderr := chaos("run", "--scenario", scenario, "--out", out, "--lock", "exec:sh "+path)
		if code != exitInconclusive {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
		text := strings.Join(strings.Fields(stdout), " ")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in:\n%s", name, want, stdout)
			}
		}
		if strings.Contains(text, "more clients") || strings.Contains(text, "\x1b") {
			t.Errorf("%s: %s", name, stdout)
		}
	}
}
