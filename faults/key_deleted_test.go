package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestKeyDeleted(t *testing.T) {
	f := newFake(cluster.Quorum)
	in := inject(t, keyDeletedSpec, f.env(), "n3")
	f.set(func() { f.replies["DEL orders"] = int64(0) })
	doesNotBite(t, in)
	f.set(func() { f.replies["DEL orders"] = int64(1) })
	if proof := bites(t, in); proof != "1 keys of locks at n3 were deleted" {
		t.Error(proof)
	}
	f.done()
	bites(t, in) // once
	did(t, f)
}

func TestKeyDeletedOfARealServer(t *testing.T) {
	c := servers(t, cluster.Single)
	in := inject(t, keyDeletedSpec, Env{Cluster: c, Keys: []string{"a", "orders"}}, "n1")
	doesNotBite(t, in)
	command(t, c, "n1", "SET", "orders", "v")
	command(t, c, "n1", "SET", "other", "v")
	bites(t, in)
	if got := command(t, c, "n1", "EXISTS", "orders", "other"); got != int64(1) {
		t.Errorf("%v keys are left, want the other one", got)
	}
	heals(t, in)
}
