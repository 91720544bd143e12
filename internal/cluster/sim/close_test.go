package sim_test

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// TestCloseEndsAllActors: none waits any longer for messages that were on their way when the cluster was closed.
func TestCloseEndsAllActors(t *testing.T) {
	for name, last := range map[string]func(w *world, a *network.Actor){
		"a frozen client is let go": func(_ *world, a *network.Actor) {
			a.Freeze()
			go func() { a.Turn(); a.AwaitThaw() }()
			pass(time.Second)
			a.Crash()
		},
		"a connection is reset": func(w *world, a *network.Actor) {
			reader(w, a)
			w.ok(w.SetRule(link0(), cluster.Both, cluster.Rule{Mode: cluster.Cut}))
		},
		"a frozen client's connection is reset": func(w *world, a *network.Actor) {
			reader(w, a)
			a.Freeze()
			w.ok(w.SetRule(link0(), cluster.Both, cluster.Rule{Mode: cluster.Cut}))
			pass(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, single(), func(w *world) { last(w, w.Client(0)) })
		})
	}
}

// reader has a connect and wait for a reply that does not come.
func reader(w *world, a *network.Actor) {
	conn, err := a.Dial(w.ctx, "tcp", w.Endpoints(0).Addrs[0])
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		a.Turn()
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			w.t.Errorf("%d bytes were read", n)
		}
	}()
	pass(time.Second)
}
