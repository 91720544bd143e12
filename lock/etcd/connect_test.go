package etcd

import (
	"context"
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/lock"
)

// TestConnect: Connect requests the lease, and the first acquire requests no other.
func TestConnect(t *testing.T) {
	b := startBackend(t)
	c := open(t, b.addr, Options{})
	leases := func() int {
		reply, err := b.admin.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(reply.Leases)
	}
	ctx, cancel := context.WithTimeout(t.Context(), sessiontest.Timeout)
	defer cancel()
	if err := c.Connect(ctx); err != nil || leases() != 1 {
		t.Fatalf("connect: %v, %d leases, want 1", err, leases())
	}
	sessiontest.Release(t, sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a"))
	if n := leases(); n != 1 {
		t.Errorf("%d leases after an acquire, want 1", n)
	}
	if err := errors.Join(c.Close(ctx), c.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := c.Connect(ctx); !errors.Is(err, lock.ErrClosed) {
		t.Errorf("connect after close: %v, want ErrClosed", err)
	}
}
