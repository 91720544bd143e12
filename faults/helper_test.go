package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/wallclock"
)

// fake is a cluster with every ability that records the actions on it.
type fake struct {
	planned
	mu      sync.Mutex
	did     []string
	roles   map[string]string // by node; a node without a role is down
	waiting map[string]int64  // bytes held, by the end that opened the connection
	errs    map[string]error  // failures, by action
	replies map[string]any    // to commands
	traffic cluster.Traffic   // beside waiting bytes
	offsets map[string]int64  // of replication, by node
	holds   map[string]string // owner of the key orders, by node
	fsyncs  map[string]int    // that were delayed, by node
	rules   []cluster.Rule    // all that were set
	ahead   time.Duration     // of every clock
	passed  map[string]int64  // bytes, by the end that opened the connection
}

func newFake(kind string) *fake {
	f := &fake{
		planned: planned{cluster.Topology{Kind: kind, Options: map[string]string{"appendonly": "yes"},
			Sample: &cluster.Program{Command: "x"}}},
		roles: map[string]string{}, waiting: map[string]int64{}, errs: map[string]error{}, replies: map[string]any{},
		offsets: map[string]int64{}, holds: map[string]string{},
		passed: map[string]int64{},
	}
	f.replies["CLUSTER SLOTS"] = []any{[]any{int64(0), int64(16383), []any{"host", int64(1), "id of n2"}}}
	f.replies["CONFIG GET save"] = []any{"save", ""}
	f.replies["INFO persistence"] = "rdb_last_bgsave_status:err\r\n"
	for i, n := range f.Nodes() {
		f.roles[n.Name] = "master"
		if f.Topology().MasterOf(i+1) > 0 {
			f.roles[n.Name] = "slave"
		}
	}
	return f
}

// do records an action and returns its error.
func (f *fake) do(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	f.did = append(f.did, what)
	return f.errs[what]
}

// done returns the actions since the last call.
func (f *fake) done() []string {
	f.mu.Lock()
	defer func() { f.did = nil; f.mu.Unlock() }()
	return f.did
}

// set changes the reports of the witness and the gates.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) Kill(_ context.Context, node string) error    { return f.do("kill %s", node) }
func (f *fake) Restart(_ context.Context, node string) error { return f.do("restart %s", node) }
func (f *fake) Pause(_ context.Context, node string) error   { return f.do("pause %s", node) }
func (f *fake) Resume(_ context.Context, node string) error  { return f.do("resume %s", node) }
func (f *fake) Promote(context.Context) error                { return f.do("promote") }

func (f *fake) MoveAddress(_ context.Context, how cluster.Move) (from, to string, err error) {
	return "n1", "n2", f.do("move the address, demote %v, stale %q", how.Demote, how.Stale)
}

func (f *fake) SettleAddress(context.Context) error { return f.do("settle the address") }

func (f *fake) Sample(_ context.Context, node string, _ []string) history.Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	role, up := f.roles[node]
	s := history.Sample{Node: node, Up: up, Role: role, Offset: f.offsets[node]}
	if owner := f.holds[node]; owner != "" {
		s.Keys = map[string]history.KeyState{"orders": {Owner: owner}}
	}
	return s
}

func (f *fake) SetRule(link cluster.Link, dir cluster.Direction, rule cluster.Rule) error {
	f.mu.Lock()
	f.rules = append(f.rules, rule)
	f.mu.Unlock()
	return f.do("rule %s>%s %d %d", link.From, link.To, dir, rule.Mode)
}

func (f *fake) Traffic(link cluster.Link, _ cluster.Direction) (cluster.Traffic, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.traffic
	t.Waiting = f.waiting[link.From]
	t.Passed += f.passed[link.From]
	return t, f.errs["traffic"]
}

// Do replies to an operator's command from replies.
func (f *fake) Do(_ context.Context, node string, args ...any) (any, error) {
	command := strings.TrimSpace(fmt.Sprintln(args...))
	err := f.do("%s: %s", node, command)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch command {
	case "CLUSTER MYID":
		return "id of " + node, err
	case "EVAL " + endlessScript + " 0":
		return nil, errors.New("BUSY Redis is busy running a script.")
	}
	return f.replies[command], err
}

// DeleteHeld deletes as many holders as were put into replies.
func (f *fake) DeleteHeld(_ context.Context, node, lock string) (int, error) {
	err := f.do("%s: delete the holders of %s", node, lock)
	f.mu.Lock()
	defer f.mu.Unlock()
	n, _ := f.replies["holders of "+lock].(int)
	return n, err
}

func (f *fake) SetClock(_ context.Context, node string, c cluster.Clock) error {
	return f.do("clock %s %v %v", node, c.Offset, c.Drift)
}

func (f *fake) ReadClock(context.Context, string) (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ahead, f.errs["read clock"]
}

func (f *fake) PowerOff(_ context.Context, node string) error { return f.do("power off %s", node) }
func (f *fake) SlowDisk(_ context.Context, node string, each time.Duration) error {
	return f.do("disk %s %v", node, each)
}

func (f *fake) SlowFsyncs(_ context.Context, node string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fsyncs[node], f.errs["fsyncs"]
}

func (f *fake) Disconnect(_ context.Context, node string) error { return f.do("unplug %s", node) }
func (f *fake) Reconnect(_ context.Context, node string) error  { return f.do("plug %s", node) }
func (f *fake) Wipe(_ context.Context, node string) error       { return f.do("wipe %s", node) }

// Crash, Stop and Continue make it the clients as well.
func (f *fake) Crash(client int) error { return f.do("crash %d", client) }
func (f *fake) StartAgain(_ context.Context, client int) error {
	return f.do("start client %d again", client)
}

func (f *fake) Stop(client int) error     { return f.do("stop %d", client) }
func (f *fake) Continue(client int) error { return f.do("continue %d", client) }

func (f *fake) env() Env {
	return Env{Cluster: f, Clients: f, Keys: []string{"orders"}, State: clientState{waiter: 2}}
}

var errBroken = errors.New("broken on purpose")

// clientState is the state of the clients.
type clientState struct {
	holder, waiter int
	alone          bool // nobody else requests or holds the lock
}

func (c clientState) Holder() (int, bool) { return c.holder, c.holder >= 0 }
func (c clientState) Waiter() (int, bool) { return c.waiter, c.waiter >= 0 }
func (c clientState) Keys() []string      { return []string{"orders"} }

// Acquiring is the waiter's request.
func (c clientState) Acquiring(client int) (cluster.Acquire, bool) {
	return cluster.Acquire{Key: "orders", Owner: "a", Alone: c.alone}, client == c.waiter
}

// inject injects and fails the test if that does not work.
func inject(t *testing.T, s Spec, e Env, target string) Injection {
	t.Helper()
	in, err := s.Inject(t.Context(), e, target)
	if err != nil {
		t.Fatalf("%s %s: %v", s.Name, target, err)
	}
	return in
}

// takesEffect waits for the effect. A Sentinel that has not run for two seconds does nothing for half a minute (TILT).
func takesEffect(t *testing.T, in Injection) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	effect, err := in.Observe(ctx)
	if err != nil || effect == "" {
		t.Fatalf("it had no effect: %q, %v", effect, err)
	}
	return effect
}

// noEffectYet checks that no effect is observed yet.
func noEffectYet(t *testing.T, in Injection) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if effect, err := in.Observe(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("an effect was observed too early: %q, %v", effect, err)
	}
}

// heals heals twice, which must be the same as once, and returns how.
func heals(t *testing.T, in Injection) string {
	t.Helper()
	how, err := in.Heal(t.Context())
	again, err2 := in.Heal(t.Context())
	if err != nil || err2 != nil || how == "" || how != again {
		t.Fatalf("healed: %q, %v; again: %q, %v", how, err, again, err2)
	}
	return how
}

// startServers starts real servers.
func startServers(t *testing.T, kind string) *process.Cluster {
	t.Helper()
	return startServersWith(t, cluster.Topology{Kind: kind}, cluster.Requirements{})
}

// startServersWith starts real servers that meet requirements.
func startServersWith(t *testing.T, topology cluster.Topology, e cluster.Requirements) *process.Cluster {
	t.Helper()
	if _, err := process.Version(t.Context(), ""); err != nil {
		t.Skip("NOT RUN: needs real servers: ", err)
	}
	if why := wallclock.Missing(); e.Clocks && why != "" {
		t.Skip("NOT RUN: ", why)
	}
	if why := process.MissingDisks(); e.Disks && why != "" {
		t.Skip("NOT RUN: ", why)
	}
	c, err := process.Start(t.Context(), process.Config{Topology: topology, Requirements: e, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// role is the role that node reports; "" if it does not reply.
func role(t *testing.T, c cluster.Cluster, node string) string {
	t.Helper()
	return c.(cluster.Witness).Sample(t.Context(), node, nil).Role
}

// becomes polls until the nodes are in these roles.
func becomes(t *testing.T, c cluster.Cluster, roles ...string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		var now []string
		for _, n := range c.Nodes() {
			now = append(now, role(t, c, n.Name))
		}
		slices.Sort(now)
		if slices.Equal(now, roles) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the nodes are %q, want %q", now, roles)
		}
	}
}

// did fails the test unless exactly this was done since the last call.
func did(t *testing.T, f *fake, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.done(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

// run executes a command on a real node.
func run(t *testing.T, c *process.Cluster, node string, args ...any) any {
	t.Helper()
	reply, err := c.Do(t.Context(), node, args...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// gets waits until node has that value at key: replicas follow asynchronously.
func gets(t *testing.T, c *process.Cluster, node, key string, want any) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		got := run(t, c, node, "GET", key)
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s of %s is %v, want %v", key, node, got, want)
		}
	}
}

// dial opens a connection of client:0 to a node's gate and exchanges a PING.
func dial(t *testing.T, c *process.Cluster, node int) *caller {
	t.Helper()
	return dialAs(t, c, 0, node)
}

// dialAs is dial for another client.
func dialAs(t *testing.T, c *process.Cluster, client, node int) *caller {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.Endpoints(client).Source)}}
	conn, err := d.DialContext(t.Context(), "tcp", c.Nodes()[node-1].Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	caller := &caller{conn, bufio.NewReader(conn)}
	caller.send(t, "AUTH "+c.Endpoints(client).Password)
	if got := caller.receive(20 * time.Second); got != "+OK" {
		t.Fatalf("received %q, want +OK", got)
	}
	caller.send(t, "PING")
	if got := caller.receive(20 * time.Second); got != "+PONG" {
		t.Fatalf("received %q, want +PONG", got)
	}
	return caller
}

// caller exchanges lines with a server.
type caller struct {
	net.Conn
	in *bufio.Reader
}

func (c *caller) send(t *testing.T, line string) {
	t.Helper()
	if _, err := c.Write([]byte(line + "\r\n")); err != nil {
		t.Fatal(err)
	}
}

// receive returns the next line, "silence" if none comes, or "closed" when the connection is.
func (c *caller) receive(most time.Duration) string {
	_ = c.SetReadDeadline(time.Now().Add(most))
	line, err := c.in.ReadString('\n')
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	case err != nil:
		return "closed"
	}
	return strings.TrimSpace(line)
}

// expect fails the test unless that is received next; for "silence" it waits briefly.
func (c *caller) expect(t *testing.T, want string) {
	t.Helper()
	most := 20 * time.Second
	if want == "silence" {
		most = 50 * time.Millisecond
	}
	if got := c.receive(most); got != want {
		t.Fatalf("received %q, want %q", got, want)
	}
}
