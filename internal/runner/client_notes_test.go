package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
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
		s := load(t, "contention", "workload.clients=2", untilDone, "expect=null", "lock=exec:python3 "+script+manners)
		out := runUntil(t, options(t, s), func(text string) bool { // on a busy machine a client is identified late
			return manners == "" && strings.Count(text, history.SourceIgnored) == 2 ||
				manners != "" && strings.Count(text, `"f":"release"`) > 10
		})
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

// forgetfulClient is a client on standard input and output that does not authenticate. It writes the password that it
// was given to a file. With a second argument it tries again until its wait is over, and says that the lock is held.
const forgetfulClient = `
import json, socket, sys, time
for line in sys.stdin:
    r, reply = json.loads(line), {"type": "ok"}
    if r["op"] == "init":
        e = r["setup"]["endpoints"]
        open(sys.argv[1], "w").write(e["password"])
        host, port = e["addrs"][0].split(":")
        connection = socket.create_connection((host, int(port)), 10, (e["source"], 0))
    if r["op"] == "acquire":
        connection.sendall(b"SET orders x\r\n")
        reply = {"type": "fail", "code": "error", "error": connection.recv(1000).decode()}
        end = time.monotonic() + r["wait_ms"] / 1000
        while len(sys.argv) > 2 and time.monotonic() < end:
            connection.sendall(b"SET orders x\r\n")
            connection.recv(1000)
            time.sleep(0.05)
            reply = {"type": "fail", "code": "held"}
    print(json.dumps({"id": r["id"], **reply}), flush=True)
    if r["op"] == "close":
        break
`

// TestClientWithoutPassword: the run says which client does not authenticate. Nothing in the run directory has the
// password, and others cannot read it.
func TestClientWithoutPassword(t *testing.T) {
	needRedis(t)
	dir := t.TempDir()
	script, secret := filepath.Join(dir, "client.py"), filepath.Join(dir, "secret")
	if err := os.WriteFile(script, []byte(forgetfulClient), 0o600); err != nil {
		t.Fatal(err)
	}
	s := load(t, "contention", "workload.clients=1", untilDone, "expect=null", "lock=exec:python3 "+script+" "+secret)
	out := runUntil(t, options(t, s), func(text string) bool { return strings.Contains(text, "NOAUTH") })
	h, err := history.ReadFile(out.Dir.File("history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	noted := 0
	for _, f := range h.Faults {
		if f.Name == history.NoPassword && strings.Contains(f.Detail, "client 0") && strings.Contains(f.Detail, "NOAUTH") {
			noted++
		}
	}
	if noted != 1 {
		t.Errorf("noted %d times, want once: %+v", noted, h.Faults)
	}
	password, err := os.ReadFile(secret)
	if err != nil || len(password) == 0 {
		t.Fatalf("no password: %v", err)
	}
	files := 0
	err = filepath.WalkDir(out.Dir.Path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if entry.IsDir() {
			want = 0o700
		}
		if mode := info.Mode().Perm(); mode != want && !strings.Contains(path, "logs") {
			t.Errorf("%s has mode %o", path, mode)
		}
		if entry.IsDir() {
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, password) {
			t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil || files < 4 {
		t.Errorf("looked at %d files: %v", files, err)
	}
}

// TestSilentClientWithoutPassword: a run ends early if servers refuse all of its clients, also if these report nothing
// but that the lock is held.
func TestSilentClientWithoutPassword(t *testing.T) {
	needRedis(t)
	script := filepath.Join(t.TempDir(), "client.py")
	if err := os.WriteFile(script, []byte(forgetfulClient), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := Run(t.Context(), options(t, load(t, "contention", "workload.clients=2", untilDone, "expect=null",
		"lock=exec:python3 "+script+" "+filepath.Join(t.TempDir(), "secret")+" silent")))
	if !errors.Is(err, cluster.ErrEnvironment) || !strings.Contains(err.Error(), "no client has authenticated") {
		t.Fatalf("the run ended with %v", err)
	}
	if v := out.Judgement.Verdict; v == checker.Safe || v == checker.Unsafe {
		t.Errorf("it is judged as %s", v)
	}
}
