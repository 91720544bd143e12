package lock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// builders are both kinds of semaphore.
func builders() map[string]maker { return map[string]maker{"plain": plainSem, "leased": leasedSem} }

// faulty is a semaphore of each kind behind a proxy that loses replies; direct sees the
// server without it.
func faulty(t *testing.T, o Options, run func(t *testing.T, s *tested, p *proxy)) {
	t.Helper()
	for kind, build := range builders() {
		t.Run(kind, func(t *testing.T) {
			direct, p, c := behindProxy(t, o)
			run(t, build(c, direct, "pool"), p)
		})
	}
}

// waiting is a semaphore of each kind whose waiters are woken or sleep for poll.
func waiting(t *testing.T, poll time.Duration, run func(t *testing.T, s *tested, holder *tested)) {
	t.Helper()
	for kind, build := range builders() {
		t.Run(kind, func(t *testing.T) {
			srv := startRedis(t)
			rdb := srv.Dial(t)
			c := newTestClient(t, srv.Dial(t), Options{PollMax: poll, Lease: time.Hour})
			holder := newTestClient(t, srv.Dial(t), Options{Lease: time.Hour})
			run(t, build(c, rdb, "pool"), build(holder, rdb, "pool"))
		})
	}
}

// queue starts a waiter for each number of permits, one after the other, and returns the
// channels of their permits.
func (s *tested) queue(t *testing.T, permits ...int) []chan *Permits {
	t.Helper()
	out := make([]chan *Permits, len(permits))
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); wg.Wait() })
	for i, n := range permits {
		out[i] = make(chan *Permits, 1)
		wg.Go(func() {
			if p, err := s.take(ctx, n); err == nil {
				out[i] <- p
			}
		})
		asleep(t, s.c, tagged(s.name, "free"), i+1)
	}
	return out
}

func servedWithin(t *testing.T, served chan *Permits) *Permits {
	t.Helper()
	select {
	case p := <-served:
		return p
	case <-time.After(testTimeout):
		t.Fatal("the waiter sleeps on")
		return nil
	}
}

// Five permits are released with one message: five waiters of one client get them, at once
// and not when a lease expires (also redisson#6687).
// Regression: redisson#6664, redisson#4349, Redisson's semaphore (a release wakes one waiter)
func TestOneReleaseWakesAsManyAsItServes(t *testing.T) {
	t.Parallel()
	waiting(t, time.Hour, func(t *testing.T, s, holder *tested) {
		s.setUp(t, 5)
		p, err := holder.take(context.Background(), 5)
		mustTake(t, p, err)
		served := s.queue(t, 1, 1, 1, 1, 1)
		mustGive(t, p)
		for _, ch := range served {
			servedWithin(t, ch)
		}
		s.want(t, 5, 0)
	})
}

// The first waiter wants more than was released: the next gets it.
func TestWakeUpSkipsWaiterThatNeedsMorePermits(t *testing.T) {
	t.Parallel()
	waiting(t, time.Hour, func(t *testing.T, s, holder *tested) {
		s.setUp(t, 3)
		one, err := holder.take(context.Background(), 1)
		mustTake(t, one, err)
		two, err := holder.take(context.Background(), 2)
		mustTake(t, two, err)
		served := s.queue(t, 3, 3, 1)
		mustGive(t, one)
		last := servedWithin(t, served[2])
		s.want(t, 3, 0)
		mustGive(t, two)
		mustGive(t, last)
		for range 2 { // in any order: it is not fair
			select {
			case p := <-served[0]:
				mustGive(t, p)
			case p := <-served[1]:
				mustGive(t, p)
			case <-time.After(testTimeout):
				t.Fatal("the waiters sleep on")
			}
		}
	})
}

// AddPermits, SetPermits and ForceRelease wake waiters, too.
func TestMorePermitsWakeWaiters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	waiting(t, time.Hour, func(t *testing.T, s, holder *tested) {
		s.setUp(t, 1)
		p, err := holder.take(ctx, 1)
		mustTake(t, p, err)
		for _, more := range []func() error{
			func() error { _, err := holder.AddPermits(ctx, 1); return err },
			func() error { return holder.SetPermits(ctx, 3) },
			func() error { _, err := holder.force(ctx, p.IDs()...); return err },
		} {
			served := s.queue(t, 1)
			if err := more(); err != nil {
				t.Fatal(err)
			}
			servedWithin(t, served[0])
		}
		s.want(t, 3, 0)
	})
}

// Redisson waits for a message without any limit: here it is lost, with and without a
// broken connection.
// Regression: redisson#5762, Redisson's semaphore and latch (unbounded wait)
func TestSemaphoreMessageLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, tt := range map[string]struct {
		poll time.Duration
		harm func(t *testing.T, rdb *redis.Client)
	}{
		"asked-again":             {50 * time.Millisecond, func(*testing.T, *redis.Client) {}},
		"resubscribed-after-cuts": {time.Hour, killSubscribers},
	} {
		t.Run(name, func(t *testing.T) {
			waiting(t, tt.poll, func(t *testing.T, s, holder *tested) {
				s.setUp(t, 1)
				p, err := holder.take(ctx, 1)
				mustTake(t, p, err)
				served := s.queue(t, 1)
				// One more permit, without a message.
				s.rdb.HIncrBy(ctx, s.name, "total", 1)
				s.rdb.HIncrBy(ctx, s.name, "free", 1)
				tt.harm(t, s.rdb)
				servedWithin(t, served[0])
				s.want(t, 2, 0)
			})
		})
	}
}

// All permits are held: TrySetPermits finds a semaphore, not an absent one.
// Regression: redisson#4678
func TestTrySetPermitsAtZero(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	bothKinds(t, map[string]func(t *testing.T, s *tested){"all-out": func(t *testing.T, s *tested) {
		s.setUp(t, 2)
		p, err := s.take(ctx, 2)
		mustTake(t, p, err)
		if set, err := s.TrySetPermits(ctx, 2); set || err != nil {
			t.Errorf("set %v, %v, want false", set, err)
		}
		s.want(t, 2, 0)
		mustGive(t, p)
	}})
}

// Hundreds of waiters in two clients are all served, with no more permits held than there
// are.
// Regression: redisson#3573
func TestHundredsOfSemaphoreWaitersAreServed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	waiting(t, time.Hour, func(t *testing.T, s, other *tested) {
		s.setUp(t, 3)
		var wg sync.WaitGroup
		out := make(chan struct{}, 3)
		for i := range 300 {
			wg.Go(func() {
				p, err := []*tested{s, other}[i%2].take(ctx, 1)
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case out <- struct{}{}:
					<-out
				default:
					t.Error("more permits are out than there are")
				}
				if err := p.Release(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		s.want(t, 3, 3)
	})
}

// Another program deletes the keys: the waiters get an error (also redisson#3728).
// Regression: redisson#3573
func TestDestroyedSemaphoreEndsWaiting(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	waiting(t, 50*time.Millisecond, func(t *testing.T, s, holder *tested) {
		s.setUp(t, 1)
		p, err := holder.take(ctx, 1)
		mustTake(t, p, err)
		failed := make(chan error, 1)
		go func() {
			_, err := s.take(ctx, 1)
			failed <- err
		}()
		asleep(t, s.c, tagged(s.name, "free"), 1)
		s.rdb.FlushAll(ctx)
		if err := <-failed; !errors.Is(err, ErrAbsent) {
			t.Errorf("error %v, want ErrAbsent", err)
		}
		if err := p.Release(ctx); !errors.Is(err, ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
		mustExist(t, s.rdb, s.name, false)
	})
}
