// Package tasks counts the goroutines and calls of a lock client, so that closing the client ends them and waits for
// their end.
package tasks

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Group counts goroutines and calls, so that Close can end them and wait for them. Several goroutines may use it.
type Group struct {
	Context context.Context // ends with Close
	stop    context.CancelCauseFunc
	cause   error // of the end of ctx

	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when closed and nothing runs
}

// New is an open group; cause is the cause of its context when it is closed.
func New(cause error) *Group {
	g := &Group{idle: make(chan struct{}), cause: cause}
	g.Context, g.stop = context.WithCancelCause(context.Background())
	return g
}

// Start runs f in a goroutine of its own, unless the group is closed: then it reports false.
func (g *Group) Start(f func()) bool {
	if !g.Enter() {
		return false
	}
	go func() {
		defer g.Done()
		growStack(0)
		f()
	}()
	return true
}

// growStack grows the stack of a new goroutine once, to about the size that a request of go-redis needs. Otherwise it
// grows in steps, and each copies the whole stack: a fifth of the CPU time of runs with five simulated masters
// (docs/contributors/measurements.md).
//
//go:noinline
func growStack(i int) byte {
	var space [4 << 10]byte
	return space[i]
}

// Enter counts the caller as running until it calls done, unless the group is closed:
// then it reports false.
func (g *Group) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running++
	return true
}

// Done is called once for each Enter that reported true.
func (g *Group) Done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.closed && g.running == 0 {
		close(g.idle)
	}
}

// Running is how many goroutines and calls there are.
func (g *Group) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// Sleep waits for d or until wake is ready; nil: it never is. It reports false if ctx
// or the group has ended.
func (g *Group) Sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
		return false
	case <-g.Context.Done():
	}
	return !g.Ended(ctx)
}

// Ended reports whether ctx or the group has ended. At one instant with a wake-up, the end has precedence.
func (g *Group) Ended(ctx context.Context) bool { return ctx.Err() != nil || g.Context.Err() != nil }

// Close ends everything and waits for that until ctx ends.
func (g *Group) Close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		if g.running == 0 {
			close(g.idle)
		}
	}
	g.mu.Unlock()
	g.stop(g.cause)
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close lock client: requests are still in flight: %w", context.Cause(ctx))
	}
}
