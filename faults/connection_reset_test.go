package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestConnectionReset(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, connectionResetSpec, f.env(), "client:0")
	did(t, f, "rule client:0>* 3 3")
	doesNotBite(t, in)
	f.set(func() { f.traffic.Resets = 2 })
	if proof := bites(t, in); proof != "2 connections were reset" {
		t.Error(proof)
	}
}

func TestConnectionResetOfARealClient(t *testing.T) {
	c := servers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, connectionResetSpec, Env{Cluster: c}, "n1")
	bites(t, in)
	client.hears(t, "over")
	heals(t, in)
	dial(t, c, 1) // and comes through
}
