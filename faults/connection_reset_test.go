package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestConnectionReset(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, connectionResetSpec, f.env(), "client:0")
	did(t, f, "rule client:0>* 3 3")
	noEffectYet(t, in)
	f.set(func() { f.traffic.Resets = 2 })
	if effect := takesEffect(t, in); effect != "2 connections reset" {
		t.Error(effect)
	}
}

func TestConnectionResetWithARealClient(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, connectionResetSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	client.expect(t, "closed")
	heals(t, in)
	dial(t, c, 1) // is accepted
}
