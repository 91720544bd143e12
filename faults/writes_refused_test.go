package faults

import (
	"context"
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestWritesRefused(t *testing.T) {
	f := newFake(cluster.ZooKeeper)
	in := inject(t, writesRefusedSpec, f.env(), "n2")
	noEffectYet(t, in) // the lock has no node
	f.set(func() { f.replies["node of orders"] = true })
	f.done()
	if effect := takesEffect(t, in); effect != "writes are refused" {
		t.Error(effect)
	}
	did(t, f, "n2: writable orders false")
	heals(t, in)
	did(t, f, "n2: writable orders true")
}

// TestWritesRefusedIsUndoneAgain: a server that does not execute the undoing is asked again.
func TestWritesRefusedIsUndoneAgain(t *testing.T) {
	f := newFake(cluster.Etcd)
	f.replies["node of orders"] = true
	in := inject(t, writesRefusedSpec, f.env(), "n1")
	takesEffect(t, in)
	f.set(func() { f.errs["n1: writable orders true"] = errors.New("no leader") })
	ctx, cancel := context.WithTimeout(t.Context(), 10*pollEvery)
	defer cancel()
	if how, err := in.Heal(ctx); err == nil {
		t.Errorf("healed although the server refuses that: %q", how)
	}
	if n := len(f.done()); n < 3 {
		t.Errorf("the server was asked %d times", n)
	}
}

// SetWritable finds no node of a lock until replies has it.
func (f *fake) SetWritable(_ context.Context, node, lock string, writable bool) (bool, error) {
	err := f.do("%s: writable %s %t", node, lock, writable)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replies["node of "+lock] != nil, err
}
