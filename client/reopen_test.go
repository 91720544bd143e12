package client

import (
	"context"
	"testing"
	"time"
)

// stubEnder is a lock that ends waits when it is closed.
type stubEnder struct {
	stubLocker
	after time.Duration
}

func (s *stubEnder) AcquireUntilClosed(_ context.Context, _ Acquire, after time.Duration) (Grant, error) {
	s.after = after
	return s.grant, s.err
}

// TestAcquireUntilClosed: an acquire with a time after which the lock is closed is executed only by a lock that states
// that it ends waits.
func TestAcquireUntilClosed(t *testing.T) {
	r := Request{ID: 1, Op: "acquire", Acquire: Acquire{Wait: time.Second}, Close: time.Millisecond}
	l := &stubEnder{stubLocker: stubLocker{err: ErrNotHeld}}
	n := opened(t, l)
	if reply := n.handle(t.Context(), r); reply.Code != "unknown-op" || l.after != 0 {
		t.Errorf("without the capability: %+v", reply)
	}
	n.row.Can = n.row.Can.With(EndsWaits)
	if reply := n.handle(t.Context(), r); reply.Type != "fail" || l.after != time.Millisecond || len(l.asks) > 0 {
		t.Errorf("%+v", reply)
	}
	n.locker = &stubLocker{}
	if reply := n.handle(t.Context(), r); reply.Code != "unknown-op" {
		t.Errorf("without the operation: %+v", reply)
	}
}
