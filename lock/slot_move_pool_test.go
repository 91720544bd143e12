package lock

import (
	"errors"
	"testing"
	"time"
)

// TestFirstUseWhileSlotMigrates: a semaphore of leased permits that does not exist is set up by the first acquire. The
// record of that acquire in the hash does not change the free permits after the migration.
func TestFirstUseWhileSlotMigrates(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	servers, rdb := startCluster(t)
	c := newTestClient(t, rdb, Options{Lease: time.Minute, Timeout: testTimeout})
	s := c.PermitSemaphore("fresh", WithTotal(3))
	m := startMove(t, servers, "fresh")
	h, err := s.TryAcquire(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if set, err := s.TrySetPermits(ctx, 7); err != nil || set {
		t.Errorf("set up again: %v, %v; want no change", set, err)
	}
	if _, err := s.TryAcquire(ctx, 2); !errors.Is(err, ErrNoPermits) {
		t.Errorf("more than are free: %v", err)
	}
	m.finish()
	if state, err := s.State(ctx); err != nil || state.Total != 3 || state.Free != 1 {
		t.Errorf("after the migration: %+v, %v", state, err)
	}
	if err := h.Release(ctx); err != nil {
		t.Error(err)
	}
}

// TestTryBehindWaiterWhileSlotMigrates: the error of a try at a fair semaphore says whether enough permits are free.
func TestTryBehindWaiterWhileSlotMigrates(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	servers, rdb := startCluster(t)
	o := Options{Lease: time.Minute, Timeout: testTimeout, PollMax: time.Hour} // the waiter keeps its place in a stall
	s := newTestClient(t, rdb, o).FairSemaphore("fair", WithTotal(3))
	m := startMove(t, servers, "fair")
	h, err := s.TryAcquire(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		all, err := s.Acquire(ctx, 3)
		if err == nil {
			err = all.Release(ctx)
		}
		waited <- err
	}()
	eventually(t, testTimeout, "the waiter is queued", func() bool { return rdb.LLen(ctx, queueKeys("fair")[0]).Val() == 1 })
	if _, err := s.TryAcquire(ctx, 1); !errors.Is(err, ErrQueued) {
		t.Errorf("one permit is free, and a client waits: %v, want %v", err, ErrQueued)
	}
	if _, err := s.TryAcquire(ctx, 2); !errors.Is(err, ErrNoPermits) || errors.Is(err, ErrQueued) {
		t.Errorf("one permit is free, two are wanted: %v, want %v", err, ErrNoPermits)
	}
	if err := h.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := within(t, testTimeout, "the waiter", waited); err != nil {
		t.Error(err)
	}
	m.finish()
}
