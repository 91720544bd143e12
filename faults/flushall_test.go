package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestFlushall(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, flushallSpec, f.env(), "n1")
	f.set(func() { f.replies["DBSIZE"] = int64(0) })
	doesNotBite(t, in)
	f.done()
	f.set(func() { f.replies["DBSIZE"] = int64(2) })
	if proof := bites(t, in); proof != "2 keys of n1 were removed" {
		t.Error(proof)
	}
	did(t, f, "n1: DBSIZE", "n1: FLUSHALL")
	heals(t, in)
}

func TestFlushallOfARealServer(t *testing.T) {
	c := servers(t, cluster.Single)
	command(t, c, "n1", "SET", "k", "v")
	in := inject(t, flushallSpec, Env{Cluster: c}, "n1")
	bites(t, in)
	if got := command(t, c, "n1", "DBSIZE"); got != int64(0) {
		t.Errorf("%v keys are left", got)
	}
	heals(t, in)
}

// TestAStrokeThatWasHealedIsOver: what had nothing to break until then breaks
// nothing later.
func TestAStrokeThatWasHealedIsOver(t *testing.T) {
	c := servers(t, cluster.Single)
	in := inject(t, flushallSpec, Env{Cluster: c}, "n1")
	doesNotBite(t, in)
	heals(t, in)
	command(t, c, "n1", "SET", "k", "v")
	doesNotBite(t, in)
	if got := command(t, c, "n1", "GET", "k"); got != "v" {
		t.Errorf("k is %v", got)
	}
}
