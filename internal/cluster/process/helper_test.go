package process

import (
	"context"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

var (
	single   = cluster.Topology{Kind: cluster.Single}
	sentinel = cluster.Topology{Kind: cluster.Sentinel}
	quorum   = cluster.Topology{Kind: cluster.Quorum, Masters: 3}
)

// up starts a cluster, closes it when the test ends, and checks that nothing is left.
func up(t *testing.T, topology cluster.Topology) *Cluster {
	t.Helper()
	began := time.Now()
	c, err := Start(t.Context(), Config{Topology: topology, Dir: t.TempDir()})
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		t.Skip("no real server to test with: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s ready after %v", topology.Kind, time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		var pids []int
		for _, s := range append(c.nodes, c.sentinels...) {
			pids = append(pids, pidOf(s))
		}
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for _, pid := range pids {
			if pid != 0 && exists(pid) {
				t.Errorf("process %d is still running", pid)
			}
		}
		if _, err := os.Stat(c.data); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s still exists (%v)", c.data, err)
		}
	})
	return c
}

// pidOf is the process of s, 0 if it has exited.
func pidOf(s *server) int { return s.proc.Load().Process.(*child.Process).PID() }

func exists(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err == nil
}

// adminWait is how long a server of a test may take to reply, on a busy machine.
const adminWait = time.Minute

// dialFrom is a connection from a client's own address to a node's gate.
func dialFrom(t *testing.T, c *Cluster, client int, node string) *admin {
	t.Helper()
	s, err := c.server(node)
	if err != nil {
		t.Fatal(err)
	}
	a := newAdmin(s.gate.Addr(), c.password)
	a.Source, a.Wait = c.Endpoints(client).Source, adminWait
	t.Cleanup(a.Close)
	return a
}

// do sends one command, and fails the test if there is no reply.
func do(t *testing.T, a *admin, command string) any {
	t.Helper()
	replies, err := a.do(t.Context(), strings.Fields(command))
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return replies[0]
}

func wantReply(t *testing.T, a *admin, command string, want any) {
	t.Helper()
	if got := do(t, a, command); got != want {
		t.Fatalf("%s replied %v, want %v", command, got, want)
	}
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitFor polls with a deadline: servers send no event. On a busy machine a Sentinel that did not run for two seconds
// acts on nothing for half a minute (TILT in Redis' sentinel.c), perhaps several times.
func waitFor(t *testing.T, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	locktest.Eventually(t, 3*time.Minute, what, ok)
	return time.Since(began)
}

// look is a sample of a node that is up. On a busy machine one may time out; look retries.
func look(t *testing.T, c *Cluster, node string, keys ...string) (s history.Sample) {
	t.Helper()
	waitFor(t, node+" to be up", func() bool {
		s = c.Sample(t.Context(), node, keys)
		return s.Up
	})
	return s
}

// fastest is the shortest of several calls: without the delays of a busy machine.
func fastest(do func()) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range 5 {
		began := time.Now()
		do()
		best = min(best, time.Since(began))
	}
	return best
}

// roleOf is the role that a node reports; it retries as look does.
func roleOf(t *testing.T, c *Cluster, node string) (role string) {
	t.Helper()
	waitFor(t, node+" to report its role", func() bool {
		var err error
		role, err = c.Role(t.Context(), node)
		return err == nil
	})
	return role
}
