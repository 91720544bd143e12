package sessiontest

import (
	"context"
	"testing"
	"time"
)

// Timeout is how long a test waits for what has to happen, also on a busy machine.
const Timeout = time.Minute

// Result is what an acquire returned.
type Result[H any] struct {
	Hold H
	Err  error
}

// AsyncAcquire acquires in the background.
func AsyncAcquire[H any](t *testing.T, acquire func(context.Context) (H, error)) <-chan Result[H] {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	t.Cleanup(cancel)
	done := make(chan Result[H], 1)
	go func() {
		h, err := acquire(ctx)
		done <- Result[H]{h, err}
	}()
	return done
}

// Granted is the hold of an acquire that succeeds.
func Granted[H any](t *testing.T, done <-chan Result[H]) H {
	t.Helper()
	r := <-done
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return r.Hold
}

// Waits fails the test if an acquire has returned.
func Waits[H any](t *testing.T, done <-chan Result[H], what string) {
	t.Helper()
	select {
	case r := <-done:
		t.Fatalf("%s does not wait: %v", what, r.Err)
	default:
	}
}
