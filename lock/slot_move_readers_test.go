package lock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestReadersWhileSlotMigrates: a writer waits for readers that live, and not for one whose lease has ended.
func TestReadersWhileSlotMigrates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers, rdb := startCluster(t)
	c := newTestClient(t, rdb, Options{PollMax: time.Second})
	l := c.RW("table")
	const lease = time.Second
	if _, err := l.Read().Acquire(ctx, WithLease(lease)); err != nil { // it dies
		t.Fatal(err)
	}
	live, err := l.Read().Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m := startMove(t, servers, "table")
	during, err := l.Read().Acquire(ctx, WithLease(lease)) // it dies as well
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write().TryAcquire(ctx); !errors.Is(err, ErrHeld) {
		t.Errorf("a writer beside readers: %v", err)
	}
	if err := live.Release(ctx); err != nil {
		t.Fatal(err)
	}
	<-during.Context().Done()
	eventually(t, testTimeout, "the writer is granted the lock", func() bool {
		w, err := l.Write().TryAcquire(ctx)
		return err == nil && w.Release(ctx) == nil
	})
	m.finish()
	w, err := l.Write().TryAcquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Release(ctx); err != nil {
		t.Error(err)
	}
}
