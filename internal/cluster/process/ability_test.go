//go:build unix

package process

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/resp"
)

// TestGatedFailover loses a lock deterministically: the master's last write is held
// on its way to the replicas when the master is killed.
func TestGatedFailover(t *testing.T) {
	t.Parallel()
	c := up(t, sentinel)
	ctx := t.Context()
	for _, replica := range []string{"n2", "n3"} {
		must(t, c.SetRule(cluster.Link{From: replica, To: "n1"}, cluster.Back, cluster.Rule{Mode: cluster.Hold}))
	}
	wantReply(t, dialFrom(t, c, 0, "n1"), "SET lock A NX PX 60000", "OK")
	waitFor(t, "the write to be held at both links", func() bool {
		n2, err2 := c.Traffic(cluster.Link{From: "n2", To: "n1"}, cluster.Back)
		n3, err3 := c.Traffic(cluster.Link{From: "n3", To: "n1"}, cluster.Back)
		return err2 == nil && err3 == nil && n2.Waiting > 0 && n3.Waiting > 0
	})
	if owner := look(t, c, "n1", "lock").Keys["lock"].Owner; owner != "A" {
		t.Fatalf("the master has owner %q, want A", owner)
	}
	must(t, c.Kill(ctx, "n1"))
	promotion := waitFor(t, "a replica to be master", func() bool {
		role, err := c.Role(ctx, "n2") // the lowest priority
		return err == nil && role == "master"
	})
	t.Logf("promoted %v after the kill", promotion.Round(time.Millisecond))
	seen := look(t, c, "n2", "lock")
	if _, there := seen.Keys["lock"]; there || !seen.Up {
		t.Fatalf("the new master is %+v, want it without the lock", seen)
	}
	wantReply(t, dialFrom(t, c, 1, "n2"), "SET lock B NX PX 60000", "OK")

	must(t, c.SetRule(cluster.Link{From: cluster.Any, To: cluster.Any}, cluster.Both, cluster.Rule{}))
	must(t, c.Restart(ctx, "n1"))
	waitFor(t, "the old master to become a replica with the new owner", func() bool {
		s := c.Sample(ctx, "n1", []string{"lock"})
		return s.Role == "slave" && s.Keys["lock"].Owner == "B"
	})
	if err := c.checkMaster(ctx); !errors.Is(err, ErrReplaced) {
		t.Errorf("checkMaster with n2 as master = %v, want ErrReplaced", err)
	}
	if err := c.waitReplicas(ctx); !errors.Is(err, ErrReplaced) {
		t.Errorf("waitReplicas with n2 as master = %v, want ErrReplaced", err)
	}
}

func TestPromote(t *testing.T) {
	c := up(t, sentinel)
	must(t, c.Pause(t.Context(), "s1")) // the next one accepts
	must(t, c.Promote(t.Context()))
	took := waitFor(t, "n2 to be master", func() bool {
		role, err := c.Role(t.Context(), "n2")
		return err == nil && role == "master"
	})
	t.Logf("promoted after %v", took.Round(time.Millisecond))
	must(t, c.Resume(t.Context(), "s1"))

	alone := up(t, single)
	if err := alone.Promote(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Promote on a single master = %v, want ErrUnsupported", err)
	}
}

func TestKillAndRestart(t *testing.T) {
	for _, test := range []struct {
		name    string
		options map[string]string
		kept    any
	}{
		{"nothing on disk", nil, nil},
		{"every write on disk", map[string]string{"appendonly": "yes", "appendfsync": "always"}, "v"},
	} {
		t.Run(test.name, func(t *testing.T) {
			topology := single
			topology.Options = test.options
			c := up(t, topology)
			wantReply(t, dialFrom(t, c, 0, "n1"), "SET k v", "OK")
			pid := pidOf(c.nodes[0])
			must(t, c.Kill(t.Context(), "n1"))
			if exists(pid) {
				t.Error("the process is still running")
			}
			if s := c.Sample(t.Context(), "n1", nil); s.Up {
				t.Error("a killed node is up")
			}
			if _, err := c.Role(t.Context(), "n1"); !errors.Is(err, cluster.ErrDown) {
				t.Errorf("role of a killed node: %v, want ErrDown", err)
			}
			if err := c.Pause(t.Context(), "n1"); !errors.Is(err, cluster.ErrDown) {
				t.Errorf("pausing a killed node: %v, want ErrDown", err)
			}
			must(t, c.Kill(t.Context(), "n1")) // may be called twice
			must(t, c.Restart(t.Context(), "n1"))
			wantReply(t, dialFrom(t, c, 0, "n1"), "GET k", test.kept)
			if err := c.Restart(t.Context(), "n1"); err == nil {
				t.Error("a running node was restarted")
			}
		})
	}
}

// TestCrash: an unexpected exit is logged, connections are refused, and the node can be restarted.
func TestCrash(t *testing.T) {
	c := up(t, single)
	var log lockedBuffer
	c.nodes[0].log = slog.New(slog.NewTextHandler(&log, nil))
	must(t, c.Kill(t.Context(), "n1"))
	must(t, c.Restart(t.Context(), "n1"))
	if got := log.String(); got != "" {
		t.Errorf("an expected exit is logged: %s", got)
	}
	must(t, syscall.Kill(pidOf(c.nodes[0]), syscall.SIGKILL))
	waitFor(t, "the crash to be logged", func() bool { return strings.Contains(log.String(), "node=n1") })
	if s := c.Sample(t.Context(), "n1", nil); s.Up {
		t.Error("a crashed node is up")
	}
	if conn, err := net.Dial("tcp", c.Nodes()[0].Addr); !errors.Is(err, syscall.ECONNREFUSED) {
		if err == nil {
			conn.Close()
		}
		t.Errorf("connecting to a crashed node = %v, want ECONNREFUSED", err)
	}
	must(t, c.Restart(t.Context(), "n1"))
	wantReply(t, dialFrom(t, c, 0, "n1"), "PING", "PONG")
}

// lockedBuffer is a buffer for concurrent use.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestPausedNodeDoesNotReplyAndSamplesDoNotWait(t *testing.T) {
	c := up(t, single)
	ctx := t.Context()
	client := dialFrom(t, c, 0, "n1")
	wantReply(t, client, "PING", "PONG")
	must(t, c.Pause(ctx, "n1"))
	if took := fastest(func() {
		if s := c.Sample(ctx, "n1", []string{"k"}); s.Up {
			t.Error("a paused node is up")
		}
	}); took > sampleWait/2 {
		t.Errorf("a sample of a paused node took %v", took)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := client.do(short, []string{"PING"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused node replied to a client: %v", err)
	}
	must(t, c.Resume(ctx, "n1"))
	waitFor(t, "n1 to be up", func() bool { return c.Sample(ctx, "n1", nil).Up })

	must(t, c.nodes[0].proc.Load().Stop()) // without the cluster's knowledge
	if took := fastest(func() {
		if s := c.Sample(ctx, "n1", nil); s.Up {
			t.Error("a stopped node is up")
		}
	}); took > 2*sampleWait {
		t.Errorf("a sample of a stopped node took %v, want about %v", took, sampleWait)
	}
	must(t, c.Resume(ctx, "n1"))
	waitFor(t, "n1 to be up again", func() bool { return c.Sample(ctx, "n1", nil).Up })
	must(t, c.Pause(ctx, "n1"))
	must(t, c.Kill(ctx, "n1")) // a paused node can be killed
	must(t, c.Restart(ctx, "n1"))
}

func TestSampleReadsLocksOfEveryType(t *testing.T) {
	c := up(t, sentinel)
	ctx := t.Context()
	n1 := dialFrom(t, c, 0, "n1")
	for _, command := range []string{
		"HSET ours owner me count 2", "PEXPIRE ours 60000", "SET plain you PX 60000", "HSET redisson 8f:12 3",
		"HSET rw mode write 8f:12:write 1", "SADD set x",
	} {
		if err, bad := do(t, n1, command).(resp.Error); bad {
			t.Fatal(err)
		}
	}
	wantReply(t, n1, "WAIT 2 0", int64(2))
	keys := []string{"ours", "plain", "redisson", "rw", "set", "free"}
	forever := -time.Millisecond
	want := map[string]history.KeyState{
		"ours": {Owner: "me", Count: 2, TTL: time.Minute}, "plain": {Owner: "you", TTL: time.Minute},
		"redisson": {Owner: "8f:12", Count: 3, TTL: forever}, "rw": {Owner: "8f:12:write", Mode: "write", Count: 1, TTL: forever},
		"set": {TTL: forever},
	}
	about := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < 10*time.Second })
	for _, node := range []string{"n1", "n2", "n3"} {
		s := look(t, c, node, keys...)
		if diff := cmp.Diff(want, s.Keys, about); diff != "" {
			t.Errorf("%s (-want +got):\n%s", node, diff)
		}
		if s.Offset <= 0 {
			t.Errorf("%s has offset %d", node, s.Offset)
		}
	}
	got := []history.Sample{look(t, c, "n1"), look(t, c, "n2"), c.Sample(ctx, "n9", nil)}
	samples := []history.Sample{{Node: "n1", Up: true, Role: "master", Replicas: 2}, {Node: "n2", Up: true, Role: "slave"},
		{Node: "n9"}}
	if diff := cmp.Diff(samples, got, cmpopts.IgnoreFields(history.Sample{}, "Offset")); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

func TestRulesApplyToOneCaller(t *testing.T) {
	c := up(t, single)
	a, b := dialFrom(t, c, 0, "n1"), dialFrom(t, c, 300, "n1")
	wantReply(t, a, "PING", "PONG")
	wantReply(t, b, "PING", "PONG")
	link := cluster.Link{From: "client:300", To: "n1"}
	must(t, c.SetRule(link, cluster.Back, cluster.Rule{Mode: cluster.Hold}))
	wantReply(t, a, "PING", "PONG")
	reply := make(chan any, 1)
	go func() {
		replies, err := b.do(context.Background(), []string{"INCR", "k"})
		if err != nil {
			replies = []any{err}
		}
		reply <- replies[0]
	}()
	waitFor(t, "the reply to be held", func() bool {
		traffic, err := c.Traffic(link, cluster.Back)
		return err == nil && traffic.Waiting > 0
	})
	wantReply(t, a, "GET k", "1") // it was executed; only its reply is held
	must(t, c.SetRule(cluster.Link{From: cluster.Any, To: cluster.Any}, cluster.Both, cluster.Rule{}))
	if got := <-reply; got != int64(1) {
		t.Errorf("the held reply is %v, want 1", got)
	}
	for _, bad := range []cluster.Link{{From: "n1", To: "n9"}, {From: "x1", To: "n1"}, {From: "client:x", To: "n1"}} {
		if err := c.SetRule(bad, cluster.Both, cluster.Rule{}); !errors.Is(err, cluster.ErrNoNode) {
			t.Errorf("SetRule(%v) = %v, want ErrNoNode", bad, err)
		}
		if _, err := c.Traffic(bad, cluster.Both); !errors.Is(err, cluster.ErrNoNode) {
			t.Errorf("Traffic(%v) = %v, want ErrNoNode", bad, err)
		}
	}
}
