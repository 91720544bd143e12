package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/resp"
)

// TestPassword: nobody reaches a server of a run without its password, which is in no command line, in no log and in
// no file that others can read, and differs from run to run.
func TestPassword(t *testing.T) {
	seen := map[string]bool{}
	for _, topology := range []cluster.Topology{sentinel, {Kind: cluster.Sharded}} {
		c := up(t, topology)
		password := c.Endpoints(0).Password
		if len(password) < 20 || seen[password] {
			t.Fatalf("password %q", password)
		}
		seen[password] = true
		for _, s := range slices.Concat(c.nodes, c.sentinels) {
			for _, addr := range []string{s.gate.Addr(), s.location.target()} {
				a := newAdmin(addr, "")
				if refused, ok := do(t, a, "INFO").(resp.Error); !ok || !strings.HasPrefix(string(refused), "NOAUTH") {
					t.Errorf("%s replies without a password: %v", s.name, refused)
				}
				a.Close()
			}
			info, err := os.Stat(s.conf)
			must(t, err)
			if mode := info.Mode().Perm(); mode != 0o600 {
				t.Errorf("the configuration of %s has mode %o", s.name, mode)
			}
			dir, err := os.Stat(c.data)
			must(t, err)
			if mode := dir.Mode().Perm(); mode != 0o700 { // servers rewrite their configuration with another mode
				t.Errorf("the directory of the servers has mode %o", mode)
			}
			for _, public := range []string{s.logFile, filepath.Join("/proc", fmt.Sprint(s.pid), "cmdline")} {
				text, err := os.ReadFile(public)
				must(t, err)
				if len(text) == 0 || bytes.Contains(text, []byte(password)) {
					t.Errorf("%s has the password, or is empty", public)
				}
			}
		}
	}
}
