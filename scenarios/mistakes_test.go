package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrorsNameTheFile: with its line and column, if the error has them.
func TestErrorsNameTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.yaml")
	for text, want := range map[string]string{
		"name: a\nlok: mutex\n": name + `:2:1: unknown key "lok"`,
		"name: a\n":             name + ": duration: ",
		"":                      name + ": the text is empty",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(name); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "scenario: ") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestErrorsOfServersOfTheUser: each has the line and the column of the key of the topology that it is about.
func TestErrorsOfServersOfTheUser(t *testing.T) {
	for keys, want := range map[string]string{
		"  run: server {hots}":                                      `[3:8] topology command: unknown placeholder {hots}`,
		"  nodes: 2\n  run: >-\n    server\n    {n3.peer}":          `[4:8] topology command: {n3.peer}: the topology has no node n3`,
		"  run: server | tee log":                                   `[3:8] topology command: "server | tee log" is one program`,
		"  nodes: 99\n  run: server":                                "[3:10] topology command: it has 1 to 15 nodes",
		"  run: server\n  env: {ADDRESS: \"{gate}\"}":               "[4:18] topology command: {gate} needs the name of a port",
		"  run: server\n  ready: {tcp: web}":                        "[4:16] topology command: ready.tcp is the name of a port",
		"  run: server\n  ready: {tcp: client, log: up}":            "[4:10] topology command: ready is one of tcp",
		"  run: server\n  role: {command: \"role {x}\"}":            "[4:19] topology command: unknown placeholder {x}",
		"  run: server\n  sample: {command: \"sample --at {host\"}": "",
		"  nodes: 2": "needs run: the command line of a server",
	} {
		text := "topology:\n  kind: command\n" + keys + "\nname: a\nlock: exec:x\nworkload: {kind: mutex}\nduration: 5s\n"
		_, err := Parse([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v, want %q", keys, err, want)
		}
	}
}
