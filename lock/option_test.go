package lock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// The context of a hold ends with its acquire's, and the hold does not; with the hold, and its parent does not.
func TestContextOfAHold(t *testing.T) {
	t.Parallel()
	type key struct{}
	c := newTestClient(t, startRedis(t).Dial(t), Options{})
	parent, cancel := context.WithCancelCause(context.WithValue(context.Background(), key{}, "value"))
	why := errors.New("the program ends")
	for name, acquire := range map[string]func() (holdOf, error){
		"mutex":   func() (holdOf, error) { return c.Mutex("mutex").Acquire(parent) },
		"multi":   func() (holdOf, error) { return multi(t, c.Mutex("a"), c.Mutex("b")).Acquire(parent) },
		"permits": func() (holdOf, error) { return c.PermitSemaphore("p", WithTotal(1)).Acquire(parent, 1) },
	} {
		first, err := acquire()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		work := first.Context()
		if work.Value(key{}) != "value" || work.Err() != nil || first.Err() != nil || isClosed(first.Done()) {
			t.Errorf("%s: value %v, error %v and %v", name, work.Value(key{}), work.Err(), first.Err())
		}
		release(t, first)
		if got := context.Cause(work); !errors.Is(got, ErrReleased) || !errors.Is(first.Err(), ErrReleased) {
			t.Errorf("%s: cause %v, error %v, want ErrReleased", name, got, first.Err())
		}
		if !isClosed(first.Done()) || parent.Err() != nil {
			t.Errorf("%s: after the release: done %v, parent %v", name, isClosed(first.Done()), parent.Err())
		}
	}
	h, err := c.Mutex("kept").Acquire(parent)
	if err != nil {
		t.Fatal(err)
	}
	cancel(why)
	<-h.Context().Done()
	if got := context.Cause(h.Context()); !errors.Is(got, why) || h.Err() != nil || isClosed(h.Done()) {
		t.Errorf("cause %v, error %v, want that of the parent, and that the hold lasts", got, h.Err())
	}
	mustBeHeld(t, c.Mutex("kept"))
	release(t, h)
}

// holdOf is a hold of any kind.
type holdOf = interface {
	Context() context.Context
	Done() <-chan struct{}
	Err() error
	Release(ctx context.Context) error
}

// WithWait bounds the wait and not the hold.
func TestWithWait(t *testing.T) {
	t.Parallel()
	c := newTestClient(t, startRedis(t).Dial(t), Options{})
	h := acquire(t, c.Mutex("wait"))
	_, err := c.Mutex("wait", WithWait(waitTimeout)).Acquire(context.Background())
	if !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) || !Definite(err) {
		t.Errorf("error %v, want a definite ErrHeld", err)
	}
	if _, ends := h.Context().Deadline(); ends {
		t.Error("the wait bounds the hold")
	}
	release(t, h)
}

// Two goroutines that share the context of a hold do not both get in, unless they ask for that; several locks as one
// do not either.
func TestReentryIsAskedFor(t *testing.T) {
	t.Parallel()
	c := newTestClient(t, startRedis(t).Dial(t), Options{})
	h := acquire(t, c.Mutex("a"))
	_, one := c.Mutex("a").Acquire(h.Context())
	_, several := multi(t, c.Mutex("a"), c.Mutex("b")).Acquire(h.Context())
	for name, err := range map[string]error{"one": one, "several": several} {
		if !errors.Is(err, ErrReentered) || !Definite(err) {
			t.Errorf("%s: %v, want a definite ErrReentered", name, err)
		}
	}
	inner, err := c.Mutex("a", WithReentry()).Acquire(h.Context())
	if err != nil || inner.Count() != 2 {
		t.Fatalf("with re-entry: %v", err)
	}
	release(t, inner)
	release(t, h)
}

func TestExtend(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	h := acquire(t, c.Mutex("longer"), WithLease(10*time.Second))
	if err := h.Extend(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(h.Deadline()); left < 50*time.Minute || rdb.PTTL(ctx, "longer").Val() < 50*time.Minute {
		t.Errorf("valid for %v, at the server for %v, want an hour", left, rdb.PTTL(ctx, "longer").Val())
	}
	if err := h.Extend(ctx, time.Microsecond); err == nil {
		t.Error("extended by a microsecond")
	}
	release(t, h)
	if err := h.Extend(ctx, time.Hour); !errors.Is(err, ErrReleased) {
		t.Errorf("after the release: %v, want ErrReleased", err)
	}
	all := acquireAll(t, multi(t, c.Mutex("a"), c.Mutex("b")), WithLease(10*time.Second))
	if err := all.Extend(ctx, time.Hour); err != nil || time.Until(all.Deadline()) < 50*time.Minute {
		t.Errorf("several: %v, valid until %v", err, all.Deadline())
	}
	releaseAll(t, all)
}

// Do releases the lock whatever its work does, and reports a loss.
func TestDo(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	failure := errors.New("work")
	type doFunc = func(work func(ctx context.Context) error) error
	fenced := func(l interface {
		Do(ctx context.Context, work func(ctx context.Context, token int64) error, opts ...Option) error
	}) doFunc {
		last := int64(0)
		return func(work func(ctx context.Context) error) error {
			return l.Do(ctx, func(ctx context.Context, token int64) error {
				if token <= last {
					t.Errorf("%T: token %d after %d", l, token, last)
				}
				last = token
				return work(ctx)
			})
		}
	}
	for name, do := range map[string]doFunc{
		"mutex":  func(work func(ctx context.Context) error) error { return c.Mutex("mutex").Do(ctx, work) },
		"fenced": fenced(c.FencedMutex("fenced")),
		"fair":   fenced(c.FairMutex("fair")),
		"write":  fenced(c.RW("write").Write()),
		"multi":  func(work func(ctx context.Context) error) error { return multi(t, c.Mutex("multi")).Do(ctx, work) },
	} {
		err := do(func(ctx context.Context) error {
			mustExist(t, rdb, name, true)
			return errors.Join(failure, ctx.Err())
		})
		if !errors.Is(err, failure) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the error of its work", name, err)
		}
		if !panics(func() { _ = do(func(context.Context) error { panic("work") }) }) {
			t.Errorf("%s: the panic was swallowed", name)
		}
		mustExist(t, rdb, name, false)
		err = do(func(context.Context) error { return rdb.Del(ctx, name).Err() })
		if !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v, want ErrLost", name, err)
		}
	}
	pool := c.Semaphore("pool", WithTotal(3))
	if err := pool.Do(ctx, 2, func(ctx context.Context) error {
		if s, err := pool.State(ctx); err != nil || s.Free != 1 {
			t.Errorf("state %+v, %v, want 1 of 3", s, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// Keys come from the function, and errors, events and holds have the name.
func TestKeyFunc(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	var names atomic.Pointer[string]
	c := newTestClient(t, rdb, Options{KeyFunc: KeyPrefix("app:{x}:"), Observe: func(e Event) { names.Store(&e.Name) }})
	release(t, acquire(t, c.RW("rw").Write()))
	release(t, acquire(t, c.FairMutex("fair")))
	all := acquireAll(t, multi(t, c.Mutex("a"), c.FencedMutex("b")))
	if tokenOf(all, "b") == 0 {
		t.Error("no token under the name")
	}
	releaseAll(t, all)
	h := acquire(t, c.Mutex("orders"))
	mustExist(t, rdb, "app:{x}:orders", true)
	if s, err := c.Mutex("orders").Inspect(ctx); err != nil || s.Owner != h.Owner() {
		t.Errorf("inspect: %+v, %v", s, err)
	}
	served := acquireLater(ctx, t, c.Mutex("orders"))
	waitSubscribed(t, c, "app:{x}:orders:free")
	release(t, h)
	release(t, within(t, testTimeout, "the waiter", served))
	if h.Name() != "orders" || *names.Load() != "orders" || c.Mutex("orders").Name() != "orders" ||
		c.RW("orders").Read().Name() != "orders" {
		t.Errorf("name %q, of the event %q", h.Name(), *names.Load())
	}
	if _, err := c.PermitSemaphore("pool", WithTotal(2)).TryAcquire(ctx, 1); err != nil {
		t.Error(err)
	}
	for _, key := range rdb.Keys(ctx, "*").Val() {
		if len(key) < 8 || key[:8] != "app:{x}:" {
			t.Errorf("key %q is outside of the prefix", key)
		}
	}
	if _, err := c.Mutex("").TryAcquire(ctx); err == nil {
		t.Error("a prefix made an empty name valid")
	}
}

// Metadata comes from the hold that was granted the free lock.
func TestMetadata(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	expect := func(name, want string) {
		t.Helper()
		if s, err := c.Mutex(name).Inspect(ctx); err != nil || s.Metadata != want {
			t.Errorf("%s: metadata %q, %v, want %q", name, s.Metadata, err, want)
		}
	}
	h := acquire(t, c.FencedMutex("plain"), WithMetadata("n w W"))
	if h.token == 0 {
		t.Error("no token")
	}
	inner := acquire(t, c.Mutex("plain"), WithOwner(h.Owner()), WithReentry(), WithMetadata("inner"))
	expect("plain", "n w W")
	release(t, inner)
	release(t, h)
	release(t, acquire(t, c.Mutex("plain")))
	first := acquire(t, c.FairMutex("fair"), WithMetadata("first"))
	expect("fair", "first")
	served := acquireLater(ctx, t, c.FairMutex("fair"), WithMetadata("second"))
	asleep(t, c, "{fair}:grant", 1)
	release(t, first)
	second := within(t, testTimeout, "the waiter", served)
	expect("fair", "second")
	release(t, second)
	expect("fair", "")
}

// A limit of tries, and delays of one's own.
func TestTries(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	h := acquire(t, c.Mutex("tried"))
	var delays []int
	m := c.Mutex("tried", WithPolling(), WithTries(4), WithRetryDelay(func(try int) time.Duration {
		delays = append(delays, try)
		return time.Millisecond
	}))
	before := locktest.Calls(t, rdb, "evalsha")
	if _, err := m.Acquire(ctx); !errors.Is(err, ErrHeld) || !Definite(err) {
		t.Errorf("error %v, want a definite ErrHeld", err)
	}
	if n := locktest.Calls(t, rdb, "evalsha") - before; n != 4 || len(delays) != 3 || delays[2] != 3 {
		t.Errorf("%d requests, delays %v, want 4 and one delay after each but the last", n, delays)
	}
	// One that waits in the queue behind others would not be refused before the lock is released.
	crowded := newTestClient(t, rdb, patient)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _, _ = crowded.Mutex("tried").Acquire(waiting) }()
	waitSubscribed(t, crowded, h.claim.freeChannel())
	refused := make(chan error, 1)
	go func() {
		_, err := crowded.Mutex("tried", WithTries(1)).Acquire(ctx)
		refused <- err
	}()
	if err := within(t, testTimeout, "the refusal", refused); !errors.Is(err, ErrHeld) {
		t.Errorf("one try beside a waiter: %v, want ErrHeld", err)
	}
	release(t, h)
}

// A semaphore is set up by its first acquire, even if that waits, and an existing one keeps its total.
func TestTotal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newTestClient(t, startRedis(t).Dial(t), Options{})
	for name, take := range map[string]func(total int) (*Permits, error){
		"plain":  func(total int) (*Permits, error) { return c.Semaphore("plain", WithTotal(total)).Acquire(ctx, 1) },
		"leased": func(n int) (*Permits, error) { return c.PermitSemaphore("leased", WithTotal(n)).TryAcquire(ctx, 1) },
	} {
		for _, total := range []int{3, 5} {
			if _, err := take(total); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if _, err := take(0); !errors.Is(err, ErrPermits) {
			t.Errorf("%s: a total of 0: %v, want ErrPermits", name, err)
		}
	}
	s, err := c.Semaphore("plain").State(ctx)
	if err != nil || s.Total != 3 || s.Free != 1 {
		t.Errorf("state %+v, %v, want 1 free of 3", s, err)
	}
}

// What a kind has no use for is refused, and so are values out of range.
func TestUselessOptions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newTestClient(t, dialRedis(t, "127.0.0.1:1"), Options{}) // never dialed
	failed := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"total of a mutex":         failed(c.Mutex("a", WithTotal(1)).TryAcquire(ctx)),
		"polling of a fair mutex":  failed(c.FairMutex("a", WithPolling()).TryAcquire(ctx)),
		"metadata of a reader":     failed(c.RW("a").Read().TryAcquire(ctx, WithMetadata("x"))),
		"lease of a semaphore":     failed(c.Semaphore("a").TryAcquire(ctx, 1, WithLease(time.Minute))),
		"owner of permits":         failed(c.PermitSemaphore("a").TryAcquire(ctx, 1, WithOwner("x"))),
		"tries of several":         failed(multi(t, c.Mutex("a")).TryAcquire(ctx, WithTries(1))),
		"atomic mutex":             failed(c.Mutex("a").TryAcquire(ctx, WithAtomic())),
		"negative wait":            failed(c.Mutex("a").TryAcquire(ctx, WithWait(-1))),
		"negative tries":           failed(c.Mutex("a").TryAcquire(ctx, WithTries(-1))),
		"no function of the delay": failed(c.Mutex("a").TryAcquire(ctx, WithRetryDelay(nil))),
		"negative total":           failed(c.Semaphore("a", WithTotal(-1)).TryAcquire(ctx, 1)),
	} {
		if err == nil || !Definite(err) || errors.Is(err, ErrHeld) {
			t.Errorf("%s: %v, want a definite error", name, err)
		}
	}
}

// TestPauseHasAFloor: no option makes a waiter send requests without a pause.
func TestPauseHasAFloor(t *testing.T) {
	t.Parallel()
	c := newTestClient(t, startRedis(t).Dial(t), Options{PollMax: 1})
	if c.o.PollMax != time.Millisecond {
		t.Errorf("poll limit %v, want 1ms", c.o.PollMax)
	}
	w := &waitLoop{client: c, retryDelay: func(int) time.Duration { return 0 }}
	if d := w.delay(0, turn{}, nil); d != time.Millisecond {
		t.Errorf("a delay of %v, want 1ms", d)
	}
}
