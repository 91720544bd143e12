package etcd

import (
	"context"
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/lock"
)

// TestConnect: Connect requests the lease, and the first acquire requests no other.
func TestConnect(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	leases := func() int {
		reply, err := s.admin.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(reply.Leases)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := c.Connect(ctx); err != nil || leases() != 1 {
		t.Fatalf("connect: %v, %d leases, want 1", err, leases())
	}
	release(t, acquire(t, c.Mutex("orders"), "a"))
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
