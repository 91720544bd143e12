package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

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
