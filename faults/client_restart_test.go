package faults

import (
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestClientRestart(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, clientRestartSpec, f.env(), "client:3")
	did(t, f, "crash 3")
	takesEffect(t, in)
	heals(t, in)
	did(t, f, "start client 3 again")
	f.errs["start client 3 again"] = errBroken
	if _, err := inject(t, clientRestartSpec, f.env(), "client:3").Heal(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("a client that cannot be started again: %v", err)
	}
}
