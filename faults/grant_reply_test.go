package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestGrantIsSeenAtTheServer(t *testing.T) {
	state := func(owner string, count int, owners ...string) map[string]history.KeyState {
		return map[string]history.KeyState{"k": {Owner: owner, Count: count, Owners: owners}}
	}
	asks := Request{Key: "k", Owner: "a"}
	for _, c := range []struct {
		name        string
		request     Request
		now, before map[string]history.KeyState
		want        bool
	}{
		{"free", asks, nil, nil, false},
		{"its owner", asks, state("a", 1), nil, true},
		{"another owner", asks, state("b", 1), nil, false},
		{"one of several readers", asks, state("b", 0, "a", "b"), state("b", 0), true},
		{"the hold that it knows", Request{Key: "k", Owner: "a", Counted: 1}, state("a", 1), state("a", 1), false},
		{"a re-entry", Request{Key: "k", Owner: "a", Counted: 1}, state("a", 2), state("a", 1), true},
		{"a name of the lock's own, alone", Request{Key: "k", Owner: "a", Alone: true}, state("x", 0), nil, true},
		{"a name of the lock's own, unchanged", Request{Key: "k", Owner: "a", Alone: true}, state("x", 0), state("x", 0), false},
		{"another key", Request{Key: "j", Owner: "a", Alone: true}, state("a", 1), nil, false},
	} {
		if got := c.request.GrantedIn(c.now, c.before); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// waiterOn is an environment in which client 2 requests the lock as owner a.
func waiterOn(c cluster.Cluster) Env {
	return Env{Cluster: c, Keys: []string{"orders"}, State: clientState{holder: 1, waiter: 2}}
}

// notTheGrant: replies pass while another owner has the lock.
func notTheGrant(t *testing.T, f *fake, in Injection) {
	t.Helper()
	did(t, f, "rule client:2>n1 2 1")
	f.set(func() { f.holds["n1"], f.waiting["client:2"] = "b", 5 })
	noEffectYet(t, in)
	for _, rule := range f.rules {
		if rule.Mode == cluster.Drop {
			t.Error("a reply that was no grant was dropped")
		}
	}
	last := f.rules[len(f.rules)-1]
	if last.HeldBy.IsZero() || last != (cluster.Rule{Mode: cluster.Hold, Once: true, HeldBy: last.HeldBy}) {
		t.Errorf("the rule is %+v, want what was held before to pass once", last)
	}
}

// TestRepliesOfASilentServerStayHeld: a server that does not report its grants may have granted the lock.
func TestRepliesOfASilentServerStayHeld(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, grantReplyLostSpec, waiterOn(f), "client:2")
	f.set(func() {
		delete(f.roles, "n1")
		f.waiting["client:2"] = 5
	})
	before := len(f.rules)
	noEffectYet(t, in)
	if len(f.rules) > before {
		t.Errorf("rules that followed: %+v, want none", f.rules[before:])
	}
}
