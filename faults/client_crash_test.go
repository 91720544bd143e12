package faults

import (
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestClientCrash(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, clientCrashSpec, f.env(), "client:3")
	did(t, f, "crash 3")
	takesEffect(t, in)
	heals(t, in)
	f.errs["crash 3"] = errBroken
	if in, err := clientCrashSpec.Inject(t.Context(), f.env(), "client:3"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	if _, err := clientCrashSpec.Inject(t.Context(), f.env(), "n1"); err == nil {
		t.Error("a server was killed as a client")
	}
}
