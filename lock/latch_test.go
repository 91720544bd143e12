package lock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// latches is one latch as two clients see it.
type latches struct {
	srv           *server
	rdb           *redis.Client
	latch, theirs *Latch
}

func newLatches(t *testing.T, poll time.Duration) latches {
	t.Helper()
	srv := startRedis(t)
	a := newTestClient(t, srv.Dial(t), Options{PollMax: poll})
	b := newTestClient(t, srv.Dial(t), Options{PollMax: poll})
	return latches{srv, srv.Dial(t), a.Latch("start"), b.Latch("start")}
}

func arm(t testing.TB, l *Latch, n int) uint64 {
	t.Helper()
	gen, err := l.TrySetCount(context.Background(), n)
	if err != nil || gen == 0 {
		t.Fatalf("arm: %d, %v", gen, err)
	}
	return gen
}

func count(t testing.TB, l *Latch, o CountDownOptions) LatchState {
	t.Helper()
	s, err := l.CountDown(context.Background(), o)
	if err != nil {
		t.Fatalf("count down: %v", err)
	}
	return s
}

// waitIn starts a waiter for a generation and returns the channel of its result.
func waitIn(t *testing.T, l *Latch, gen uint64) chan error {
	t.Helper()
	out := make(chan error, 1)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() { out <- l.WaitGeneration(ctx, gen) })
	return out
}

func passes(t *testing.T, waiter chan error, want error) {
	t.Helper()
	select {
	case err := <-waiter:
		if !errors.Is(err, want) {
			t.Errorf("wait: %v, want %v", err, want)
		}
	case <-time.After(testTimeout):
		t.Fatal("the waiter sleeps on")
	}
}

// The basic operations of a latch.
func TestLatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	x := newLatches(t, time.Hour)
	gen := arm(t, x.latch, 2)
	if _, err := x.theirs.TrySetCount(ctx, 5); !errors.Is(err, ErrArmed) || !Definite(err) {
		t.Errorf("armed twice: %v, want a definite ErrArmed", err)
	}
	short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	if err := x.latch.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait: %v, want DeadlineExceeded", err)
	}
	if got := count(t, x.theirs, CountDownOptions{}); got != (LatchState{1, gen}) {
		t.Errorf("after one: %+v", got)
	}
	waiter := waitIn(t, x.latch, 0)
	asleep(t, x.latch.client, "{start}:open", 1)
	if got := count(t, x.latch, CountDownOptions{}); got != (LatchState{0, gen}) {
		t.Errorf("after two: %+v", got)
	}
	passes(t, waiter, nil)
	if err := x.theirs.Wait(ctx); err != nil {
		t.Errorf("an open latch: %v", err)
	}
	if got := count(t, x.latch, CountDownOptions{}); got != (LatchState{0, gen}) {
		t.Errorf("after three: %+v", got)
	}
}

// All waiters of all clients pass at one message.
// Regression: redisson#2304
func TestAllWaitersPassAtOneMessage(t *testing.T) {
	t.Parallel()
	x := newLatches(t, time.Hour)
	arm(t, x.latch, 1)
	var waiters []chan error
	for range 10 {
		waiters = append(waiters, waitIn(t, x.latch, 0), waitIn(t, x.theirs, 0))
	}
	asleep(t, x.latch.client, "{start}:open", 10)
	asleep(t, x.theirs.client, "{start}:open", 10)
	count(t, x.latch, CountDownOptions{})
	for _, w := range waiters {
		passes(t, w, nil)
	}
}

// Redisson waits for a message without any limit: here the message is lost.
// Regression: Redisson's semaphore and latch (unbounded wait)
func TestLatchMessageLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		poll time.Duration
		harm func(t *testing.T, rdb *redis.Client)
	}{
		"asked-again":             {50 * time.Millisecond, func(*testing.T, *redis.Client) {}},
		"resubscribed-after-cuts": {time.Hour, killSubscribers},
	} {
		t.Run(name, func(t *testing.T) {
			x := newLatches(t, tt.poll)
			arm(t, x.latch, 1)
			waiter := waitIn(t, x.latch, 0)
			asleep(t, x.latch.client, "{start}:open", 1)
			x.rdb.HSet(context.Background(), "start", "count", 0) // without a message
			tt.harm(t, x.rdb)
			passes(t, waiter, nil)
		})
	}
}

// A participant that counts twice, or whose request is retried after a lost reply, counts
// once.
func TestLatchCountsOnce(t *testing.T) {
	t.Parallel()
	srv := startRedis(t)
	p := startProxy(t, srv.Addr)
	l := newTestClient(t, dialRedis(t, p.Addr), Options{}).Latch("start")
	p.lose(2)
	gen := arm(t, l, 4)
	for i, want := range []int{3, 2} {
		p.lose(2)
		if got := count(t, l, CountDownOptions{}); got != (LatchState{want, gen}) {
			t.Errorf("count %d: %+v, want %d left", i+1, got, want)
		}
	}
	for range 3 {
		if got := count(t, l, CountDownOptions{Participant: "me"}); got.Count != 1 {
			t.Errorf("the same participant: %+v, want 1 left", got)
		}
	}
	p.lose(2)
	if err := l.Delete(context.Background()); err != nil {
		t.Error(err)
	}
	if len(p.Dropped) != 8 {
		t.Errorf("%d replies were lost, want 8", len(p.Dropped))
	}
}

// A count that arrives again after the latch was armed again counts nothing.
func TestLatchLateCountIsOfItsGeneration(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	x := newLatches(t, time.Hour)
	arm(t, x.latch, 1)
	request := wire.Call{Script: kindScript.latch.count,
		Keys: []string{"start", "{start}:tombstone:r"}, Args: []any{10000, "r", 0, openChannel("start")}}
	for range 2 {
		if got, err := x.latch.client.request(ctx, request, 2, false); err != nil || got.Code != wire.CodeOK || got.Int(0) != 0 {
			t.Fatalf("count: %v, %v", got, err)
		}
		if s, _ := x.latch.State(ctx); s.Count == 0 {
			arm(t, x.latch, 2)
		}
	}
	if s, err := x.latch.State(ctx); err != nil || s.Count != 2 {
		t.Errorf("%+v, %v, want 2 left", s, err)
	}
}

// Generations that are waited for or counted after they have passed.
func TestLatchGenerations(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	x := newLatches(t, time.Hour)
	first := arm(t, x.latch, 1)
	count(t, x.latch, CountDownOptions{})
	second := arm(t, x.latch, 1)
	if second <= first {
		t.Errorf("generation %d after %d", second, first)
	}
	if err := x.latch.WaitGeneration(ctx, first); err != nil {
		t.Errorf("a generation that has opened: %v", err)
	}
	if got := count(t, x.latch, CountDownOptions{Generation: first}); got != (LatchState{0, first}) {
		t.Errorf("counted %+v", got)
	}
	waiter := waitIn(t, x.theirs, 0) // it waits for the second
	asleep(t, x.theirs.client, "{start}:open", 1)
	if err := x.latch.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	passes(t, waiter, ErrAbsent)
	third := arm(t, x.latch, 1)
	count(t, x.latch, CountDownOptions{})
	for _, old := range []uint64{first, second} { // the third is open, which they are not
		if err := x.latch.WaitGeneration(ctx, old); !errors.Is(err, ErrRearmed) {
			t.Errorf("generation %d after a deletion: %v, want ErrRearmed", old, err)
		}
		if _, err := x.latch.CountDown(ctx, CountDownOptions{Generation: old}); !errors.Is(err, ErrRearmed) {
			t.Errorf("count of generation %d: %v, want ErrRearmed", old, err)
		}
	}
	x.rdb.HSet(ctx, "start", "gen", third+1<<40) // armed when the clock was fast
	if got := arm(t, x.latch, 1); got != third+1<<40+1 {
		t.Errorf("generation %d after %d", got, third+1<<40)
	}
}

// A waiter misses a deletion and a new arming because the message was lost: when the new
// generation opens, the old waiter does not pass.
func TestLatchOldWaiterIsNotSatisfiedByTheNext(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	x := newLatches(t, time.Hour)
	arm(t, x.latch, 1)
	waiter := waitIn(t, x.theirs, 0)
	asleep(t, x.theirs.client, "{start}:open", 1)
	x.rdb.Del(ctx, "start")
	p := x.rdb.Pipeline()
	gen := uint64(time.Now().Add(time.Hour).UnixMicro())
	p.HSet(ctx, "start", "kind", "latch", "count", 0, "gen", gen, "since", gen) // armed and open, without a message
	if _, err := p.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	killSubscribers(t, x.rdb)
	passes(t, waiter, ErrRearmed)
}

func TestLatchBadInput(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	x := newLatches(t, time.Hour)
	x.rdb.Set(ctx, "string", "x", 0)
	c := x.latch.client
	release(t, acquire(t, c.Mutex("mutex")))
	h := acquire(t, c.Mutex("mutex"))
	defer release(t, h)
	for i, tt := range []struct {
		do   func() error
		want error
	}{
		{func() error { _, err := x.latch.TrySetCount(ctx, 0); return err }, ErrPermits},
		{func() error { _, err := x.latch.TrySetCount(ctx, -1); return err }, ErrPermits},
		{func() error { _, err := x.latch.CountDown(ctx, CountDownOptions{}); return err }, ErrAbsent},
		{func() error { _, err := x.latch.State(ctx); return err }, ErrAbsent},
		{func() error { return x.latch.Wait(ctx) }, ErrAbsent},
		{func() error { return c.Latch("string").Wait(ctx) }, ErrForeign},
		{func() error { return c.Latch("string").Delete(ctx) }, ErrForeign},
		{func() error { _, err := c.Latch("mutex").TrySetCount(ctx, 1); return err }, ErrForeign},
		{func() error { return c.Latch("mutex").Delete(ctx) }, ErrForeign},
	} {
		if err := tt.do(); !errors.Is(err, tt.want) || !Definite(err) {
			t.Errorf("case %d: %v, want a definite %v", i, err, tt.want)
		}
	}
	if err := c.Latch("").Wait(ctx); err == nil {
		t.Error("an empty name was accepted")
	}
	mustExist(t, x.rdb, "string", true)
	mustExist(t, x.rdb, "mutex", true)
}

// The server restarts empty while clients wait: that is not an open latch.
func TestLatchLostIsNotOpen(t *testing.T) {
	t.Parallel()
	x := newLatches(t, 50*time.Millisecond)
	arm(t, x.latch, 1)
	waiter := waitIn(t, x.latch, 0)
	asleep(t, x.latch.client, "{start}:open", 1)
	x.srv.Kill()
	locktest.StartServerAt(t, x.srv.Addr)
	passes(t, waiter, ErrAbsent)
}
