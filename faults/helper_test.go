package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/cluster"
	"github.com/lockchaos/lockchaos/cluster/process"
	"github.com/lockchaos/lockchaos/history"
)

// bare is a cluster without abilities.
type bare struct{ topology cluster.Topology }

func (b bare) Topology() cluster.Topology      { return b.topology.Defaults() }
func (b bare) Endpoints(int) cluster.Endpoints { return cluster.Endpoints{} }
func (b bare) Close(context.Context) error     { return nil }
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
}

func newFake(kind string) *fake {
	f := &fake{
		bare:  bare{cluster.Topology{Kind: kind}},
		roles: map[string]string{}, waiting: map[string]int64{}, errs: map[string]error{},
	}
	for i, n := range f.Nodes() {
		f.roles[n.Name] = "master"
		if kind == cluster.Sentinel && i > 0 {
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
	return history.Sample{Node: node, Up: up, Role: role}
}

func (f *fake) SetRule(link cluster.Link, dir cluster.Direction, rule cluster.Rule) error {
	return f.do("rule %s>%s %d %d", link.From, link.To, dir, rule.Mode)
}

func (f *fake) Traffic(link cluster.Link, _ cluster.Direction) (cluster.Traffic, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cluster.Traffic{Waiting: f.waiting[link.From]}, f.errs["traffic"]
}

// Stop and Continue make it the clients as well.
func (f *fake) Stop(client int) error     { return f.do("stop %d", client) }
func (f *fake) Continue(client int) error { return f.do("continue %d", client) }

func (f *fake) env() Env { return Env{Cluster: f, Clients: f} }

var errBroken = errors.New("it is broken")

// crowd is what is known of the clients.
type crowd struct{ holder, waiter int }

func (c crowd) Holder() (int, bool) { return c.holder, c.holder >= 0 }
func (c crowd) Waiter() (int, bool) { return c.waiter, c.waiter >= 0 }

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
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
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
	c, err := process.Start(t.Context(), process.Config{Topology: cluster.Topology{Kind: kind}, Dir: t.TempDir()})
	if errors.Is(err, cluster.ErrEnvironment) {
		t.Skip("NOT RUN: needs real servers: ", err)
	}
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
	for end := time.Now().Add(20 * time.Second); ; <-tick.C {
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
