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

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// bare is a cluster without abilities.
type bare struct{ topology cluster.Topology }

func (b bare) Topology() cluster.Topology     { return b.topology.Defaults() }
func (b bare) Endpoints(int) client.Endpoints { return client.Endpoints{} }
func (b bare) Close(context.Context) error    { return nil }
func (b bare) Nodes() (nodes []cluster.Node) {
	for i := range b.topology.Size() {
		nodes = append(nodes, cluster.Node{Name: fmt.Sprintf("n%d", i+1)})
	}
	return nodes
}

// fake is a cluster with every ability, that writes down what was done to it.
type fake struct {
	bare
	mu      sync.Mutex
	did     []string
	roles   map[string]string // by node; a node that is not there is down
	waiting map[string]int64  // bytes held, by the replica that called
	errs    map[string]error  // what goes wrong, by what was done
	replies map[string]any    // to commands
	traffic cluster.Traffic   // beside what is waiting
	offsets map[string]int64  // of replication, by node
	holds   map[string]string // owner of the key orders, by node
	rules   []cluster.Rule    // all that were set
}

func newFake(kind string) *fake {
	f := &fake{
		bare:  bare{cluster.Topology{Kind: kind}},
		roles: map[string]string{}, waiting: map[string]int64{}, errs: map[string]error{}, replies: map[string]any{},
		offsets: map[string]int64{}, holds: map[string]string{},
	}
	for i, n := range f.Nodes() {
		f.roles[n.Name] = "master"
		if f.Topology().MasterOf(i+1) > 0 {
			f.roles[n.Name] = "slave"
		}
	}
	return f
}

// do writes down what was done and says what goes wrong with it.
func (f *fake) do(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	f.did = append(f.did, what)
	return f.errs[what]
}

// done is what was done since it was last asked.
func (f *fake) done() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.did = nil }()
	return f.did
}

// set changes what the witness and the gates see.
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
	return t, f.errs["traffic"]
}

// Do answers an operator's command with what was put into replies.
func (f *fake) Do(_ context.Context, node string, args ...any) (any, error) {
	command := strings.TrimSpace(fmt.Sprintln(args...))
	err := f.do("%s: %s", node, command)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replies[command], err
}

func (f *fake) SetClock(_ context.Context, node string, c cluster.Clock) error {
	return f.do("clock %s %v %v", node, c.Offset, c.Drift)
}

func (f *fake) PowerOff(_ context.Context, node string) error   { return f.do("power off %s", node) }
func (f *fake) Disconnect(_ context.Context, node string) error { return f.do("unplug %s", node) }
func (f *fake) Reconnect(_ context.Context, node string) error  { return f.do("plug %s", node) }
func (f *fake) Wipe(_ context.Context, node string) error       { return f.do("wipe %s", node) }

// Stop, Continue and Crash make it the clients as well.
func (f *fake) Crash(client int) error    { return f.do("crash %d", client) }
func (f *fake) Stop(client int) error     { return f.do("stop %d", client) }
func (f *fake) Continue(client int) error { return f.do("continue %d", client) }

func (f *fake) env() Env { return Env{Cluster: f, Clients: f, Keys: []string{"orders"}} }

var errBroken = errors.New("it is broken")

// crowd is what is known of the clients.
type crowd struct{ holder, waiter int }

func (c crowd) Holder() (int, bool) { return c.holder, c.holder >= 0 }
func (c crowd) Waiter() (int, bool) { return c.waiter, c.waiter >= 0 }
func (c crowd) Keys() []string      { return []string{"orders"} }

// inject injects and fails the test if that does not work.
func inject(t *testing.T, s Spec, e Env, target string) Injection {
	t.Helper()
	in, err := s.Inject(t.Context(), e, target)
	if err != nil {
		t.Fatalf("%s %s: %v", s.Name, target, err)
	}
	return in
}

// bites waits for the proof.
func bites(t *testing.T, in Injection) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	proof, err := in.Bite(ctx)
	if err != nil || proof == "" {
		t.Fatalf("it did not bite: %q, %v", proof, err)
	}
	return proof
}

// doesNotBite makes sure that there is no proof yet.
func doesNotBite(t *testing.T, in Injection) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if proof, err := in.Bite(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it bit before it could: %q, %v", proof, err)
	}
}

// heals heals twice, which is once, and says how.
func heals(t *testing.T, in Injection) string {
	t.Helper()
	how, err := in.Heal(t.Context())
	again, err2 := in.Heal(t.Context())
	if err != nil || err2 != nil || how == "" || how != again {
		t.Fatalf("healed: %q, %v; again: %q, %v", how, err, again, err2)
	}
	return how
}

// servers are real ones.
func servers(t *testing.T, kind string) *process.Cluster {
	t.Helper()
	return startWith(t, cluster.Topology{Kind: kind}, cluster.Requirements{})
}

// startWith starts real servers with more than plain ones have.
func startWith(t *testing.T, topology cluster.Topology, e cluster.Requirements) *process.Cluster {
	t.Helper()
	if _, err := process.Version(t.Context(), ""); err != nil {
		t.Skip("NOT RUN: needs real servers: ", err)
	}
	if why := process.MissingClocks(); e.Clocks && why != "" {
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

// role is what node says of itself; "" if it does not answer.
func role(t *testing.T, c cluster.Cluster, node string) string {
	t.Helper()
	return c.(cluster.Witness).Sample(t.Context(), node, nil).Role
}

// becomes polls until every node is in its role, links included.
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

// did fails the test unless exactly this was done since it was last asked.
func did(t *testing.T, f *fake, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.done(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

// command runs one at a real node.
func command(t *testing.T, c *process.Cluster, node string, args ...any) any {
	t.Helper()
	reply, err := c.Do(t.Context(), node, args...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// gets waits until node has that at key: replicas follow in their own time.
func gets(t *testing.T, c *process.Cluster, node, key string, want any) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		got := command(t, c, node, "GET", key)
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s of %s is %v, want %v", key, node, got, want)
		}
	}
}

// dial is a connection of client:0 to a node's gate, that has said hello.
func dial(t *testing.T, c *process.Cluster, node int) *caller {
	t.Helper()
	return dialAs(t, c, 0, node)
}

// dialAs is dial of another client.
func dialAs(t *testing.T, c *process.Cluster, client, node int) *caller {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.Endpoints(client).Source)}}
	conn, err := d.DialContext(t.Context(), "tcp", c.Nodes()[node-1].Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	caller := &caller{conn, bufio.NewReader(conn)}
	caller.say(t, "PING")
	if got := caller.hear(20 * time.Second); got != "+PONG" {
		t.Fatalf("heard %q", got)
	}
	return caller
}

// caller speaks to a server in lines.
type caller struct {
	net.Conn
	in *bufio.Reader
}

func (c *caller) say(t *testing.T, line string) {
	t.Helper()
	if _, err := c.Write([]byte(line + "\r\n")); err != nil {
		t.Fatal(err)
	}
}

// hear is the next line, "silence" if none comes, or "over" when the connection is.
func (c *caller) hear(most time.Duration) string {
	_ = c.SetReadDeadline(time.Now().Add(most))
	line, err := c.in.ReadString('\n')
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	case err != nil:
		return "over"
	}
	return strings.TrimSpace(line)
}

// hears fails the test unless that is what comes next; "silence" is waited for briefly.
func (c *caller) hears(t *testing.T, want string) {
	t.Helper()
	most := 20 * time.Second
	if want == "silence" {
		most = 50 * time.Millisecond
	}
	if got := c.hear(most); got != want {
		t.Fatalf("heard %q, want %q", got, want)
	}
}
