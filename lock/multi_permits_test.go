package lock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// withPermits are a mutex and permits of each kind of semaphore, as one.
func (x trio) withPermits(c *Client) []AnyLock {
	return []AnyLock{
		c.FairSemaphore(x.d, WithTotal(3)).Permits(2), c.PermitSemaphore(x.b, WithTotal(3)).Permits(1),
		c.Semaphore(x.b+"2", WithTotal(3)).Permits(3), c.FencedMutex(x.a),
	}
}

// wantFree checks how many permits are free.
func (x trio) wantFree(t testing.TB, fair, leased, plain int) {
	t.Helper()
	for _, s := range []struct {
		name string
		of   interface {
			State(ctx context.Context) (SemaphoreState, error)
		}
		want int
	}{
		{"fair", x.theirs.FairSemaphore(x.d), fair},
		{"leased", x.theirs.PermitSemaphore(x.b), leased},
		{"plain", x.theirs.Semaphore(x.b + "2"), plain},
	} {
		if got, err := s.of.State(context.Background()); err != nil || got.Free != s.want {
			t.Errorf("%s semaphore: %d are free, %v, want %d", s.name, got.Free, err, s.want)
		}
	}
}

// Permits of semaphores are part of several locks: all or none, and lost as a whole.
func TestMultiOfPermits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	eachTrio(t, map[string]func(t *testing.T, x trio){
		"acquired-and-released": func(t *testing.T, x trio) {
			h := acquireAll(t, multi(t, x.withPermits(x.c)...))
			x.wantFree(t, 1, 2, 0)
			if got, want := multi(t, x.withPermits(x.c)...).Names(), h.Names(); !slices.Equal(got, want) {
				t.Errorf("names %q, want %q", got, want)
			}
			if _, fenced := h.Token(x.a); !fenced || h.Count() != 1 || len(h.Names()) != 4 {
				t.Errorf("fenced %v, count %d, names %q", fenced, h.Count(), h.Names())
			}
			if left := time.Until(h.Deadline()); left < 10*time.Second || left > 30*time.Second {
				t.Errorf("valid for %v, want a little less than 30 s", left)
			}
			releaseAll(t, h)
			x.wantFree(t, 3, 3, 3)
			mustExist(t, x.rdb, x.a, false)
		},
		"refused": func(t *testing.T, x trio) {
			releaseAll(t, acquireAll(t, multi(t, x.withPermits(x.theirs)...))) // sets them up
			for name, one := range map[string]AnyLock{
				"fair": x.theirs.FairSemaphore(x.d).Permits(2), "leased": x.theirs.PermitSemaphore(x.b).Permits(3),
				"plain": x.theirs.Semaphore(x.b + "2").Permits(1), "mutex": x.theirs.Mutex(x.a),
			} {
				h := acquireAll(t, multi(t, one))
				before := heldPermits(t, x)
				_, tried := multi(t, x.withPermits(x.c)...).TryAcquire(ctx)
				_, waited := multi(t, x.withPermits(x.c)...).Acquire(ctx, WithWait(waitTimeout))
				for _, err := range []error{tried, waited} {
					if !errors.Is(err, ErrHeld) || !Definite(err) {
						t.Errorf("%s is held: %v, want a definite ErrHeld", name, err)
					}
				}
				if after := heldPermits(t, x); after != before {
					t.Errorf("%s is held: %d permits are held after the refusal, %d before", name, after, before)
				}
				releaseAll(t, h)
			}
			x.wantFree(t, 3, 3, 3)
			mustExist(t, x.rdb, x.a, false)
		},
		"part-lost": func(t *testing.T, x trio) {
			h := acquireAll(t, multi(t, x.withPermits(x.c)...), WithLease(time.Hour))
			s, err := x.theirs.PermitSemaphore(x.b).State(ctx)
			if err != nil || len(s.Holds) != 1 {
				t.Fatalf("state %+v, %v", s, err)
			}
			if n, err := x.theirs.PermitSemaphore(x.b).ForceRelease(ctx, s.Holds[0].ID); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if err := h.Renew(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("renew: %v, want ErrLost", err)
			}
			<-h.Done()
			if err := h.Release(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("release: %v, want ErrLost", err)
			}
			x.wantFree(t, 3, 3, 3)
		},
		"without-a-lease": func(t *testing.T, x trio) {
			h := acquireAll(t, multi(t, x.c.Semaphore(x.a, WithTotal(1)).Permits(1)), WithLease(time.Second))
			if !h.Deadline().IsZero() || h.Count() != 0 {
				t.Errorf("deadline %v, count %d, want none", h.Deadline(), h.Count())
			}
			if err := h.Renew(ctx); err != nil {
				t.Errorf("renew: %v", err)
			}
			releaseAll(t, h)
		},
	})
}

// heldPermits is how many permits of all semaphores are held.
func heldPermits(t testing.TB, x trio) (held int) {
	t.Helper()
	ctx := context.Background()
	for _, of := range []interface {
		State(ctx context.Context) (SemaphoreState, error)
	}{x.c.FairSemaphore(x.d), x.c.PermitSemaphore(x.b), x.c.Semaphore(x.b + "2")} {
		s, err := of.State(ctx)
		if err != nil {
			t.Fatal(err)
		}
		held += s.Total - s.Free
	}
	return held
}

// Wrong numbers of permits and options are refused when the locks are named, and the rest at the acquire.
func TestMultiOfPermitsRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newTestClient(t, startRedis(t).Dial(t), Options{})
	for _, row := range []struct {
		name string
		one  AnyLock
		want error // nil: any
	}{
		{"none", c.Semaphore("s").Permits(0), ErrPermits},
		{"negative", c.FairSemaphore("s").Permits(-1), ErrPermits},
		{"too many for one request", c.PermitSemaphore("s").Permits(maxLeased + 1), ErrPermits},
		{"total of 0", c.PermitSemaphore("s", WithTotal(0)).Permits(1), ErrPermits},
		{"lease of its own", c.PermitSemaphore("s", WithLease(time.Second)).Permits(1), nil},
	} {
		if _, err := Multi(c.Mutex("m"), row.one); err == nil || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
	}
	if _, err := Multi(c.Semaphore("s").Permits(1), c.Semaphore("s").Permits(1)); err == nil {
		t.Error("one semaphore twice: no error")
	}
	if _, err := multi(t, c.Mutex("m"), c.Semaphore("s").Permits(1)).Acquire(ctx); !errors.Is(err, ErrAbsent) {
		t.Errorf("a semaphore that was not set up: %v, want ErrAbsent", err)
	}
	more := multi(t, c.Mutex("m"), c.Semaphore("s", WithTotal(2)).Permits(3))
	if _, err := more.Acquire(ctx); !errors.Is(err, ErrPermits) || !Definite(err) {
		t.Errorf("more than there are: %v, want a definite ErrPermits", err)
	}
	if _, err := more.TryAcquire(ctx, WithAtomic()); !errors.Is(err, ErrNotAtomic) {
		t.Errorf("atomic: %v, want ErrNotAtomic", err)
	}
	release(t, acquire(t, c.Mutex("m"))) // nothing was left
}

// Two programs that take a permit of each of two semaphores in opposite orders, as one, both get through.
func TestMultiOfPermitsMakesNoDeadlock(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	one := func(c *Client, name string) AnyLock { return c.FairSemaphore(name, WithTotal(1)).Permits(1) }
	done := make(chan error)
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		c := newTestClient(t, rdb, Options{})
		both := multi(t, one(c, order[0]), one(c, order[1]))
		go func() {
			var err error
			for range 20 {
				err = errors.Join(err, both.Do(context.Background(), func(ctx context.Context) error { return ctx.Err() },
					WithWait(testTimeout)))
			}
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestNoReplyToASetUp: an acquire that has to set up its semaphore, and gets no reply to that, certainly has none.
// So an acquire of several locks may try again.
func TestNoReplyToASetUp(t *testing.T) {
	t.Parallel()
	_, p, c := behindProxy(t, Options{})
	p.HoldReplies("\r\ntry\r\n")
	for name, take := range map[string]func(ctx context.Context) (*Permits, error){
		"acquire": func(ctx context.Context) (*Permits, error) { return c.Semaphore("a", WithTotal(3)).Acquire(ctx, 1) },
		"drain":   func(ctx context.Context) (*Permits, error) { return c.Semaphore("b", WithTotal(3)).Drain(ctx) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		go func() {
			<-p.Dropped
			cancel()
		}()
		if _, err := take(ctx); !Definite(err) {
			t.Errorf("%s: %v, want an error that says that nothing is held", name, err)
		}
		cancel()
	}
}
