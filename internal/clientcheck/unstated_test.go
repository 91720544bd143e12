package clientcheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/promise"
)

// renewing is the code of a client that renews its leases without a request, in a thread of its own.
const renewing = `
def keep(r, key):
    mine = Redis(r)
    while mine.call("PEXPIRE", key, 5000):
        time.sleep(0.3)

`

// TestUnstated: the check sees promises that a client keeps and does not state, and nothing else. It recommends the
// validity of grants to a client that does not state it.
func TestUnstated(t *testing.T) {
	for _, program := range []string{"redis-server", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: needs %s on the PATH", program)
		}
	}
	source, err := os.ReadFile("../../examples/client.py")
	if err != nil {
		t.Fatal(err)
	}
	const granted = `"PX", int(lease)) is not None`
	for _, test := range []struct {
		name    string
		replace []string
		want    promise.Set
	}{
		{"nothing", nil, 0},
		{"renew", []string{`["try", "renew"]`, `["try"]`}, promise.Renew},
		{"validity", []string{`"count": 1, "valid_ms": valid, "mono_ns": now`, `"count": 1`}, 0},
		{"fenced", []string{`"count": 1,`, `"count": 1, "token": start,`}, promise.Fenced},
		{"reentrant", []string{granted, granted + ` or redis.call("GET", request["key"]) == request["owner"].encode()`},
			promise.Reentrant},
		{"permits", []string{`"SET", request["key"]`, `"SET", request["key"] + (request["owner"] if "limit" in request else "")`},
			promise.Permits},
		{"watchdog", []string{"def acquire(", renewing + "def acquire(",
			`            if valid > 0:`, `            if valid > 0:
                import threading
                threading.Thread(target=keep, args=(redis.endpoints, request["key"]), daemon=True).start()`,
			"self.conn = None\n\n", "self.conn = None\n        self.endpoints = endpoints\n\n"}, promise.Watchdog},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text := string(source)
			for i := 0; i < len(test.replace); i += 2 {
				if !strings.Contains(text, test.replace[i]) {
					t.Fatalf("examples/client.py no longer has %q", test.replace[i])
				}
				text = strings.Replace(text, test.replace[i], test.replace[i+1], 1)
			}
			file := filepath.Join(t.TempDir(), "client.py")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			row, err := locks.Lookup("exec:python3 " + file)
			if err != nil {
				t.Fatal(err)
			}
			result, err := Run(t.Context(), Options{Lock: row})
			if err != nil {
				t.Fatal(err)
			}
			if result.Unstated != test.want {
				t.Errorf("seen %v, want %v: %+v", result.Unstated, test.want, result.Findings)
			}
			for _, f := range result.Findings {
				advised := strings.Contains(f.Detail, "state valid_ms")
				if !f.OK || advised != (test.name == "validity" && f.Check == "acquire") {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}
