package lock

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// drained is a semaphore of any kind.
type drained interface {
	Drain(ctx context.Context, opts ...Option) (*Permits, error)
	TryAcquire(ctx context.Context, n int, opts ...Option) (*Permits, error)
	State(ctx context.Context) (SemaphoreState, error)
}

func eachSemaphore(t *testing.T, test func(t *testing.T, c *Client, pool drained)) {
	for name, of := range map[string]func(c *Client) drained{
		"semaphore": func(c *Client) drained { return c.Semaphore("pool", WithTotal(5)) },
		"permits":   func(c *Client) drained { return c.PermitSemaphore("pool", WithTotal(5)) },
		"fair":      func(c *Client) drained { return c.FairSemaphore("pool", WithTotal(5)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTestClient(t, startRedis(t).Dial(t), Options{})
			test(t, c, of(c))
		})
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	eachSemaphore(t, func(t *testing.T, _ *Client, pool drained) {
		ctx := context.Background()
		two, err := pool.TryAcquire(ctx, 2)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := pool.Drain(ctx)
		if err != nil || rest.Count() != 3 {
			t.Fatalf("drained %v, %v; want the three that are free", rest, err)
		}
		if _, err := pool.Drain(ctx); !errors.Is(err, ErrHeld) {
			t.Errorf("none is free: %v", err)
		}
		if err := errors.Join(two.Release(ctx), rest.Release(ctx)); err != nil {
			t.Error(err)
		}
		if s, err := pool.State(ctx); err != nil || s.Free != 5 {
			t.Errorf("after the releases: %+v, %v", s, err)
		}
	})
}

// A semaphore that does not exist is set up with its total; without one there is an error.
func TestDrainSetsUp(t *testing.T) {
	t.Parallel()
	eachSemaphore(t, func(t *testing.T, c *Client, pool drained) {
		if p, err := pool.Drain(context.Background()); err != nil || p.Count() != 5 {
			t.Errorf("drained %v, %v; want all five", p, err)
		}
		if _, err := c.Semaphore("other").Drain(context.Background()); !errors.Is(err, ErrAbsent) {
			t.Errorf("a semaphore that does not exist: %v", err)
		}
	})
}

// Clients that drain at the same time together get no more than there are, and leave none.
func TestDrainsAtTheSameTime(t *testing.T) {
	t.Parallel()
	eachSemaphore(t, func(t *testing.T, _ *Client, pool drained) {
		ctx := context.Background()
		if p, err := pool.TryAcquire(ctx, 1); err != nil || p.Release(ctx) != nil {
			t.Fatal("set up", err)
		}
		counts := make([]int, 8)
		var wg sync.WaitGroup
		for i := range counts {
			wg.Go(func() {
				p, err := pool.Drain(ctx)
				if err == nil {
					counts[i] = p.Count()
				} else if !errors.Is(err, ErrHeld) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		sum := 0
		for _, n := range counts {
			sum += n
		}
		if sum != 5 {
			t.Errorf("they drained %v permits, %d in all; want 5", counts, sum)
		}
	})
}
