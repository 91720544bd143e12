package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history"
)

// strayClient is a client on standard input and output that keeps to the protocol, connects to the server from an
// address of its own choice, and has a child in a session of its own.
const strayClient = `
import json, socket, subprocess, sys
for line in sys.stdin:
    r = json.loads(line)
    if r["op"] == "init":
        endpoints = r["setup"]["endpoints"]
        host, port = endpoints["addrs"][0].split(":")
        source = (endpoints["source"], 0) if "polite" in sys.argv else None
        connection = socket.create_connection((host, int(port)), 10, source)
        if "polite" not in sys.argv:
            subprocess.Popen(["setsid", "sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    print(json.dumps({"id": r["id"], "type": "ok"}), flush=True)
    if r["op"] == "close":
        break
`

// TestStrayClient: a client that ignores its source is named, and a child of it that has a session of its own is named
// and ended. A client that does neither is not mentioned.
func TestStrayClient(t *testing.T) {
	needRedis(t)
	if runtime.GOOS != "linux" {
		t.Skip("NOT RUN: the owner of a connection is found in /proc, which only Linux has")
	}
	script := filepath.Join(t.TempDir(), "client.py")
	if err := os.WriteFile(script, []byte(strayClient), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, manners := range []string{"", " polite"} {
		s := load(t, "contention", "workload.clients=2", "duration=300ms", "expect={}", "lock=exec:python3 "+script+manners)
		out, err := Run(t.Context(), options(t, s))
		if err != nil {
			t.Fatal(err)
		}
		h, err := history.ReadFile(out.Dir.File("history.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var noted []string
		for _, f := range h.Faults {
			if f.Name == history.SourceIgnored || f.Name == history.ProcessLeft {
				noted = append(noted, fmt.Sprintf("%s %s: %s", f.Name, f.Target, f.Detail))
			}
		}
		text := strings.Join(noted, "\n")
		if manners != "" {
			if text != "" {
				t.Errorf("a client that keeps to the rules: %s", text)
			}
			continue
		}
		for _, want := range []string{
			"source-ignored client:0: client 0 connected to n1 from 127.0.0.1, not from the source",
			"source-ignored client:1: ", "process-left client:0: process ", "(sleep), which client 0 had started",
		} {
			if strings.Count(text, want) != 1 {
				t.Errorf("not once %q in:\n%s", want, text)
			}
		}
	}
}
