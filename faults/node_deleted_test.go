package faults

import (
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestNodeDeleted(t *testing.T) {
	f := newFake(cluster.ZooKeeper)
	in := inject(t, nodeDeletedSpec, f.env(), "n2")
	noEffectYet(t, in)
	f.set(func() { f.errs["n2: delete the holders of orders"] = errors.New("no leader") })
	noEffectYet(t, in)
	f.set(func() {
		clear(f.errs)
		f.replies["holders of orders"] = 2
	})
	if effect := takesEffect(t, in); effect != "2 holders deleted" {
		t.Error(effect)
	}
	f.done()
	takesEffect(t, in) // deletes only once
	did(t, f)
	if why := nodeDeletedSpec.WrongTopology(cluster.Single); why == "" {
		t.Error("node-deleted runs on Redis too")
	}
}
