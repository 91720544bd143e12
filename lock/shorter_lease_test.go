package lock

import (
	"context"
	"testing"
	"time"
)

// A waiter sleeps until the lock ends. It learns when that is earlier than it was when it asked: the holder that
// had the longest lease has left, and the other one has died.
func TestWriterLearnsThatTheLongestReadHasEnded(t *testing.T) {
	t.Parallel()
	ctx, srv := context.Background(), startRedis(t)
	l := newTestClient(t, srv.Dial(t), patient).RW("page")
	long, err := l.Read().Acquire(ctx, WithLease(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Read().Acquire(ctx, WithLease(time.Second)); err != nil {
		t.Fatal(err)
	}
	waiting := newTestClient(t, srv.Dial(t), patient)
	served := make(chan error, 1)
	go func() {
		_, err := waiting.RW("page").Write().Acquire(ctx)
		served <- err
	}()
	asleep(t, waiting, writeChannel("page"), 1)
	if err := long.Release(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-served: // when the lease of the other reader has ended
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(testTimeout):
		t.Fatal("the writer sleeps on")
	}
}

// The set of permits expires with the last lease, and then all permits are free.
func TestPermitsLeaveNoKeyThatNeverExpires(t *testing.T) {
	t.Parallel()
	ctx, srv := context.Background(), startRedis(t)
	rdb := srv.Dial(t)
	s := newTestClient(t, rdb, patient).PermitSemaphore("pool", WithTotal(3))
	p, err := s.Acquire(ctx, 3, WithLease(300*time.Millisecond))
	mustTake(t, p, err)
	eventually(t, testTimeout, "the set has expired", func() bool {
		return rdb.Exists(ctx, "{pool}:permits").Val() == 0
	})
	p, err = s.TryAcquire(ctx, 3)
	mustTake(t, p, err)
}
