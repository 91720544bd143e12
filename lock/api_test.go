package lock

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// Invalid input is refused when the client is made, or at the first use, and always before
// a request is sent.
func TestBadInput(t *testing.T) {
	t.Parallel()
	a, b := dialRedis(t, "127.0.0.1:1"), dialRedis(t, "127.0.0.1:2") // never dialed
	c := newTestClient(t, a, Options{})
	var none *redis.Client
	quorum := func(o Options, rdbs ...redis.UniversalClient) func() error {
		return func() error { _, err := NewQuorum(o, rdbs...); return err }
	}
	single := func(rdb redis.UniversalClient, o Options) func() error {
		return func() error { _, err := New(rdb, o); return err }
	}
	take := func(name string, lease time.Duration) func() error {
		return func() error {
			_, err := c.Mutex(name).TryAcquire(context.Background(), WithLease(lease))
			return err
		}
	}
	for name, try := range map[string]func() error{
		"nil client":           single(nil, Options{}),
		"typed nil client":     single(none, Options{}),
		"no masters":           quorum(Options{}),
		"one master":           quorum(Options{}, a),
		"even masters":         quorum(Options{}, a, b),
		"same client twice":    quorum(Options{}, a, b, a),
		"same server twice":    quorum(Options{}, a, b, dialRedis(t, "127.0.0.1:2")),
		"nil among masters":    quorum(Options{}, a, nil, b),
		"replicas of a quorum": quorum(Options{Replicas: 1}, a, b, dialRedis(t, "127.0.0.1:3")),
		"negative replicas":    single(a, Options{Replicas: -2}),
		"negative timeout":     single(a, Options{ReplicaTimeout: -1}),
		"short default lease":  single(a, Options{Lease: time.Millisecond}),
		"empty name":           take("", 0),
		"brace in name":        take("a}b", 0),
		"empty tag":            take("a{}b", 0),
		"lease of nanoseconds": take("x", time.Nanosecond),
		"negative lease":       take("x", -time.Second),
		"endless lease":        take("x", math.MaxInt64),
		"negative maximum hold": func() error {
			_, err := c.Mutex("x").TryAcquire(context.Background(), WithMaxHold(-1))
			return err
		},
		"inspect no name": func() error { _, err := c.Mutex("").Inspect(context.Background()); return err },
	} {
		if err := try(); err == nil || !Definite(err) {
			t.Errorf("%s: error %v, want a definite one", name, err)
		}
	}
}

// A name with a hash tag is used as it is.
func TestNameWithTag(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	release(t, acquire(t, c.FencedMutex("{user}:7")))
	mustExist(t, rdb, "{user}:7:token", true)
}

func TestSoleOwner(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	each(t, map[string]func(t *testing.T, p pair){
		"refused": func(t *testing.T, p pair) {
			h := acquire(t, p.m)
			_, err := p.m.Acquire(h.Context())
			if !errors.Is(err, ErrReentered) || !Definite(err) {
				t.Errorf("re-entry: %v, want a definite ErrReentered", err)
			}
			if got := p.rdb.HGet(ctx, p.m.name, "count").Val(); got != "1" {
				t.Errorf("count %s, want 1", got)
			}
			release(t, h)
			mustExist(t, p.rdb, p.m.name, false)
		},
	})
}

// Without WithReentry, the other kinds refuse an owner that holds the lock; a readers-writer lock does so in every
// combination. A heartbeat or a retry is no re-entry.
func TestSoleOwnerOfOtherKinds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	rdb, c := s.Dial(t), newTestClient(t, dialRedis(t, p.Addr), Options{PollMax: 50 * time.Millisecond})
	sole := []Option{WithOwner("x")}
	for name, tt := range map[string]struct{ first, second fencedTaker }{
		"fair":        {c.FairMutex("fair"), c.FairMutex("fair")},
		"read-read":   {c.RW("read-read").Read(), c.RW("read-read").Read()},
		"read-write":  {c.RW("read-write").Read(), c.RW("read-write").Write()},
		"write-read":  {c.RW("write-read").Write(), c.RW("write-read").Read()},
		"write-write": {c.RW("write-write").Write(), c.RW("write-write").Write()},
	} {
		t.Run(name, func(t *testing.T) {
			p.lose(1)
			h := acquire(t, tt.first, sole...)
			for what, ask := range map[string]func(context.Context, ...Option) (*FencedHold, error){
				"acquire": tt.second.Acquire, "try": tt.second.TryAcquire,
			} {
				if _, err := ask(ctx, sole...); !errors.Is(err, ErrReentered) || !Definite(err) {
					t.Errorf("%s: %v, want a definite ErrReentered", what, err)
				}
			}
			served := acquireLater(ctx, t, tt.second, WithOwner("y"))
			release(t, h)
			release(t, within(t, testTimeout, "another owner", served))
			mustBeRemoved(t, rdb, name)
		})
	}
	if len(p.Dropped) != 5 {
		t.Errorf("%d replies were lost, want 5: the test has not tested all it should", len(p.Dropped))
	}
}

// A request that is retried is no re-entry, though its owner holds the lock.
func TestSoleOwnerAnswerLost(t *testing.T) {
	t.Parallel()
	_, p, c := behindProxy(t, Options{})
	p.lose(1)
	h, err := c.Mutex("lost").TryAcquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	release(t, h)
	if len(p.Dropped) != 1 {
		t.Error("no reply was lost: nothing was tested")
	}
}

func TestInspectAndForce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	each(t, map[string]func(t *testing.T, p pair){
		"free": func(t *testing.T, p pair) {
			if got, err := p.m.Inspect(ctx); err != nil || got != (State{}) {
				t.Errorf("state %+v, %v, want a free lock", got, err)
			}
			if had, err := p.m.ForceRelease(ctx); had || err != nil {
				t.Errorf("force: %v, %v, want that it was free", had, err)
			}
		},
		"held": func(t *testing.T, p pair) {
			h := acquire(t, p.m, WithOwner("x"), WithReentry())
			acquire(t, p.m, WithOwner("x"), WithReentry())
			got, err := p.theirs.Inspect(ctx)
			want := State{Owner: "x", Count: 2, Token: h.token, Remaining: got.Remaining}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("state %v: %s", err, diff)
			}
			if got.Remaining < 10*time.Second || got.Remaining > 30*time.Second {
				t.Errorf("remaining %v, want just under 30 s", got.Remaining)
			}
		},
		"forced": func(t *testing.T, p pair) {
			h := acquire(t, p.m, WithLease(time.Hour))
			served := make(chan *Hold, 1)
			go func() {
				h, _ := p.theirs.Acquire(ctx)
				served <- h
			}()
			waitSubscribed(t, p.theirs.client, p.theirs.channel())
			if got, _ := p.theirs.Inspect(ctx); got.Waiting != 1 {
				t.Errorf("%d waiters, want 1", got.Waiting)
			}
			if had, err := p.m.ForceRelease(ctx); !had || err != nil {
				t.Errorf("force: %v, %v, want that it was held", had, err)
			}
			next := within(t, testTimeout, "the waiter", served)
			if err := h.Release(ctx); !errors.Is(err, ErrLost) || !errors.Is(err, ErrNotOwner) {
				t.Errorf("release: %v, want ErrLost and ErrNotOwner", err)
			}
			release(t, next)
		},
		"foreign": func(t *testing.T, p pair) {
			p.rdb.HSet(ctx, p.m.name, "size", "9")
			if _, err := p.m.Inspect(ctx); !errors.Is(err, ErrForeign) {
				t.Errorf("inspect: %v, want ErrForeign", err)
			}
			if _, err := p.m.ForceRelease(ctx); !errors.Is(err, ErrForeign) {
				t.Errorf("force: %v, want ErrForeign", err)
			}
			mustExist(t, p.rdb, p.m.name, true)
		},
	})
}

func (m *Mutex) channel() string { return claim{key: m.key}.freeChannel() }

func TestLocker(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	l := c.Mutex("std").Locker(context.Background())
	inside, most := 0, 0
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			l.Lock()
			defer l.Unlock()
			inside++ // the race detector reports two that are here
			most = max(most, inside)
			inside--
		})
	}
	wg.Wait()
	if most != 1 || l.Err() != nil {
		t.Errorf("%d inside at once, error %v", most, l.Err())
	}
	if !l.TryLock() || c.Mutex("std").Locker(context.Background()).TryLock() {
		t.Error("TryLock: want the first to have it, and not the second")
	}
	rdb.Del(context.Background(), "std")
	if l.Unlock(); !errors.Is(l.Err(), ErrLost) {
		t.Errorf("unlock of a lost lock: %v, want ErrLost", l.Err())
	}
	for name, f := range map[string]func(){
		"unlock of what is not locked": l.Unlock,
		"lock with an ended context":   lockEnded(c),
	} {
		if !panics(f) {
			t.Errorf("%s did not panic", name)
		}
	}
}

func lockEnded(c *Client) func() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return c.Mutex("std").Locker(ctx).Lock
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// With polling, no subscription is made, and waiters are served all the same.
func TestPolling(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	h := acquire(t, c.Mutex("spin"))
	served := make(chan *Hold, 1)
	asked := locktest.Calls(t, rdb, "evalsha")
	go func() {
		h, err := c.Mutex("spin", WithPolling()).Acquire(context.Background())
		if err != nil {
			t.Error(err)
		}
		served <- h
	}()
	eventually(t, testTimeout, "it polls", func() bool { return locktest.Calls(t, rdb, "evalsha") > asked+3 })
	release(t, h)
	release(t, within(t, testTimeout, "the spinning waiter", served))
	if c.queues.InUse() {
		t.Error("a subscription was made")
	}
}
