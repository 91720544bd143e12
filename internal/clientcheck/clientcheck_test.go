package clientcheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/promise"
)

// broken are mistakes of a client, made by changing the example, and the checks that have to find them.
var broken = []struct{ name, old, new, check, detail string }{ //nolint:gochecknoglobals // a table
	{"none", "", "", "", ""},
	{"source ignored", "2, self.source", "2, None", "source", "not from the source that it was given"},
	{"no exclusion", `"NX", "PX"`, `"XX", "PX"`, "acquire", "expected ok, got fail (held)"},
	{"granted twice", `"NX", "PX"`, `"PX"`, "acquire of a held lock", "expected fail, got ok"},
	{"release of nothing", `if redis.call("EVAL", text, 1, request["key"], request["owner"], *more) == 0:`,
		`if redis.call("EVAL", text, 1, request["key"], request["owner"], *more) == 7:`,
		"release of a lock not held", "expected fail, got ok"},
	{"unknown operation", `return {"type": "fail", "code": "unknown-op", "error": "unknown op " + request["op"]}`,
		`return {"type": "ok"}`, "unknown operation", "expected fail, got ok"},
	{"unknown mode", `if request.get("mode"):`, `if False:`, "unknown mode", "expected fail, got ok"},
	{"wrong outcome", `reply = {"type": "info", "code": "unknown"`, `reply = {"type": "fail", "code": "unknown"`,
		"lost reply", "expected info, got fail"},
	{"granted without a reply", `reply = {"type": "info", "code": "unknown", "error": str(e)}`, `reply = {"type": "ok"}`,
		"lost reply", "although no server's reply can have reached the client"},
	{"no close", "        break", "        time.sleep(600)", "close", "client 0"},
	{"unknown promise", `["try", "renew"]`, `["try", "persists"]`, "init", "(did you mean retries-transient-errors?)"},
	{"claims to host several", `json.dumps({"id": request["id"], **reply})`,
		`json.dumps({"id": request["id"], "client": request.get("client"), **reply})`,
		"several clients in one process", "one waited while the other worked"},
	{"no client", "import socket", "raise SystemExit('no license')", "init", "exited"},
}

// TestWithoutServers: a lock that needs no server has no connections to check.
func TestWithoutServers(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("NOT RUN: needs python3 on the PATH")
	}
	t.Setenv("TMPDIR", t.TempDir())
	row, err := locks.Lookup("exec:python3 ../../examples/servers/flock_client.py")
	if err != nil {
		t.Fatal(err)
	}
	result, err := Run(t.Context(), Options{Lock: row, InitTimeout: 5 * time.Minute,
		Servers: &cluster.Topology{Kind: cluster.None}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Findings {
		if !f.OK {
			t.Errorf("%+v", f)
		}
	}
}

func TestBrokenClients(t *testing.T) {
	for _, program := range []string{"redis-server", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: needs %s on the PATH", program)
		}
	}
	source, err := os.ReadFile("../../examples/client.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		t.Run(strings.ReplaceAll(b.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(string(source), b.old) {
				t.Fatalf("examples/client.py no longer has %q", b.old)
			}
			file := filepath.Join(t.TempDir(), "client.py")
			text := strings.Replace(string(source), b.old, b.new, 1)
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			row, err := locks.Lookup("exec:python3 " + file)
			if err != nil {
				t.Fatal(err)
			}
			result, err := Run(t.Context(), Options{Lock: row, InitTimeout: 5 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			seen := b.check == ""
			for _, f := range result.Findings {
				if f.Check == b.check && !f.OK && strings.Contains(f.Detail, b.detail) {
					seen = true
				} else if !f.OK && b.check == "" {
					t.Errorf("a client that keeps to the protocol: %+v", f)
				}
			}
			if !seen {
				t.Errorf("%s was not found: %+v", b.check, result.Findings)
			}
		})
	}
}

// TestTopologies: a lock is checked on servers that it runs on, and only a lock with leases is asked for one.
func TestTopologies(t *testing.T) {
	for _, row := range locks.Catalog() {
		c := &checks{Options: Options{Lock: row}}
		if kind := c.topology().Kind; !row.Runs(kind) {
			t.Errorf("%s is checked on topology %s", row.Name, kind)
		}
		r := c.request(history.OpAcquire.String(), key, "a", longWait)
		if unleased := row.Can.Has(promise.Unleased); unleased != (r.Lease == 0) {
			t.Errorf("%s: unleased is %v, and it is asked for a lease of %s", row.Name, unleased, r.Lease)
		}
	}
}
