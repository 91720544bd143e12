package lock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// background counts the goroutines and calls of a client, so that Close can end
// them and wait for them.
type background struct {
	ctx   context.Context // ends with Close
	stop  context.CancelCauseFunc
	cause error // of the end of ctx

	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when closed and nothing runs
}

// newBackground is an open group; cause is the cause of its context when it is closed.
func newBackground(cause error) *background {
	b := &background{idle: make(chan struct{}), cause: cause}
	b.ctx, b.stop = context.WithCancelCause(context.Background())
	return b
}

// start runs f in a goroutine of its own, unless b is closed: then it reports false.
func (b *background) start(f func()) bool {
	if !b.enter() {
		return false
	}
	go func() {
		defer b.done()
		growStack(0)
		f()
	}()
	return true
}

// growStack grows the stack of a new goroutine once, to about what a request of go-redis needs. Otherwise it grows in
// steps, and each copies what lies on it: a fifth of the CPU time of runs with five simulated masters
// (docs/contributors/measurements.md).
//
//go:noinline
func growStack(i int) byte {
	var space [4 << 10]byte
	return space[i]
}

// enter counts the caller as running until it calls done, unless b is closed:
// then it reports false.
func (b *background) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running++
	return true
}

func (b *background) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	if b.closed && b.running == 0 {
		close(b.idle)
	}
}

// sleep waits for d or until wake is ready; nil: it never is. It reports false if ctx
// or b has ended.
func (b *background) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
		return false
	case <-b.ctx.Done():
	}
	return !b.ended(ctx)
}

// ended reports whether ctx or b has ended. At one instant with a wake-up, the end has precedence.
func (b *background) ended(ctx context.Context) bool { return ctx.Err() != nil || b.ctx.Err() != nil }

// close ends everything and waits for that until ctx ends.
func (b *background) close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		if b.running == 0 {
			close(b.idle)
		}
	}
	b.mu.Unlock()
	b.stop(b.cause)
	select {
	case <-b.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close lock client: requests are still in flight: %w", context.Cause(ctx))
	}
}
