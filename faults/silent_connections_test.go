package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestSilentConnections(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, silentConnectionsSpec, f.env(), "client:0")
	did(t, f, "rule client:0>* 3 0")
	if last := f.rules[len(f.rules)-1]; last != (cluster.Rule{Silent: true}) {
		t.Errorf("rule %+v, want a silent one", last)
	}
	noEffectYet(t, in)
	f.set(func() { f.traffic.Dropped = 2 })
	if effect := takesEffect(t, in); effect != "2 bytes lost" {
		t.Error(effect)
	}
}

func TestSilentConnectionsWithARealClient(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, silentConnectionsSpec, Env{Cluster: c}, "client:0")
	client.send(t, "PING")
	takesEffect(t, in)
	fresh := dial(t, c, 1)
	fresh.send(t, "PING")
	fresh.expect(t, "+PONG")
	heals(t, in)
	client.expect(t, "silence")
}
