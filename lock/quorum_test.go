package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// masters are independent servers, and a client of the lock on all of them.
type masters struct {
	servers []*server
	direct  []*redis.Client
	client  *Client
}

func startMasters(t *testing.T, n int, o Options) *masters {
	t.Helper()
	m := &masters{}
	var rdbs []redis.UniversalClient
	for range n {
		s := startRedis(t)
		m.servers = append(m.servers, s)
		m.direct = append(m.direct, s.Dial(t))
		rdbs = append(rdbs, s.Dial(t))
	}
	m.client = newQuorumClient(t, rdbs, o)
	return m
}

func newQuorumClient(t *testing.T, rdbs []redis.UniversalClient, o Options) *Client {
	t.Helper()
	o.NodeTimeout = cmp.Or(o.NodeTimeout, replyTimeout)
	c, err := NewQuorum(o, rdbs...)
	if err != nil {
		t.Fatal(err)
	}
	settle(c)
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// another is a second client of the same masters.
func (m *masters) another(t *testing.T, o Options) *Client {
	t.Helper()
	var rdbs []redis.UniversalClient
	for _, s := range m.servers {
		rdbs = append(rdbs, s.Dial(t))
	}
	return newQuorumClient(t, rdbs, o)
}

// keep is how many masters have the key.
func (m *masters) keep(name string) int {
	n := 0
	for _, rdb := range m.direct {
		n += int(rdb.Exists(context.Background(), name).Val())
	}
	return n
}

func TestQuorumRefusesNumbers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 4} {
		if _, err := NewQuorum(Options{}, make([]redis.UniversalClient, n)...); err == nil {
			t.Errorf("%d masters were accepted", n)
		}
	}
}

func TestQuorum(t *testing.T) {
	t.Parallel()
	m := startMasters(t, 5, Options{})
	other := m.another(t, Options{})
	ctx := context.Background()

	h := acquire(t, m.client.Mutex("q"))
	if h.token != 0 || h.Count() != 1 {
		t.Errorf("token %d, count %d, want 0, 1", h.token, h.Count())
	}
	if _, err := other.Mutex("q").TryAcquire(ctx); !errors.Is(err, ErrHeld) || !Definite(err) {
		t.Errorf("other: %v, want a definite ErrHeld", err)
	}
	inner, err := m.client.Mutex("q").Acquire(h.Context(), WithReentry())
	if err != nil || inner.Count() != 2 {
		t.Fatalf("re-entry: %v", err)
	}
	release(t, inner)
	if n := m.keep("q"); n < 3 {
		t.Errorf("after the inner release %d masters keep the lock", n)
	}
	release(t, h)
	eventually(t, testTimeout, "no master keeps the lock", func() bool { return m.keep("q") == 0 })
	if err := h.Release(ctx); !errors.Is(err, ErrReleased) {
		t.Errorf("second release: %v, want ErrReleased", err)
	}

	h = acquire(t, m.client.Mutex("q"))
	served := make(chan error, 1)
	go func() {
		h, err := other.Mutex("q").Acquire(ctx)
		if err == nil {
			err = h.Release(ctx)
		}
		served <- err
	}()
	release(t, h)
	if err := within(t, testTimeout, "the waiter is served", served); err != nil {
		t.Error(err)
	}

	h = acquire(t, m.client.Mutex("q"), WithLease(200*time.Millisecond))
	<-h.Context().Done()
	if err := h.Release(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("release after the lease: %v, want ErrLost", err)
	}
}

func TestQuorumWithDeadMasters(t *testing.T) {
	t.Parallel()
	m := startMasters(t, 5, Options{})
	m.servers[1].Kill()
	m.servers[3].Kill()
	start := time.Now()
	h := acquire(t, m.client.Mutex("q"))
	if n := m.keep("q"); n != 3 {
		t.Errorf("%d masters keep the lock, want 3", n)
	}
	release(t, h)

	t.Logf("2 dead: %v", time.Since(start))
	m.servers[0].Kill()
	_, err := m.client.Mutex("q").TryAcquire(context.Background())
	if !errors.Is(err, ErrNoQuorum) {
		t.Errorf("error %v, want ErrNoQuorum", err)
	}
	t.Logf("3 dead: %v", time.Since(start))
	eventually(t, testTimeout, "no live master keeps an orphan", func() bool { return m.keep("q") == 0 })
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	if _, err := m.client.Mutex("q").Acquire(ctx); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("error %v, want ErrNoQuorum", err)
	}
	t.Logf("waited: %v", time.Since(start))
}

// A majority that replies after the lease has expired has granted nothing (Redisson's
// RedLock does not check).
func TestQuorumTooLate(t *testing.T) {
	t.Parallel()
	var rdbs []redis.UniversalClient
	var direct []*redis.Client
	var proxies []*proxy
	for range 3 {
		s := startRedis(t)
		p := startProxy(t, s.Addr)
		proxies = append(proxies, p)
		direct = append(direct, s.Dial(t))
		rdbs = append(rdbs, dialRedis(t, p.Addr))
	}
	c := newQuorumClient(t, rdbs, Options{NodeTimeout: replyTimeout})
	release(t, acquire(t, c.Mutex("warm")))
	for _, p := range proxies {
		p.Delay(150 * time.Millisecond)
	}
	_, err := c.Mutex("slow").TryAcquire(context.Background(), WithLease(100*time.Millisecond))
	if err == nil || !Definite(err) {
		t.Errorf("error %v, want a definite one", err)
	}
	for i, rdb := range direct {
		eventually(t, testTimeout, fmt.Sprintf("master %d keeps no orphan", i+1), func() bool {
			return rdb.Exists(context.Background(), "slow").Val() == 0
		})
	}
}

// One of the smallest possible majority restarts empty: the next renewal restores the
// claim there, and on the masters that missed it at first.
func TestRenewalRestoresAClaim(t *testing.T) {
	t.Parallel()
	s := newHooks()
	m := startMasters(t, 3, s.options(watchedLease))
	h := acquire(t, m.client.Mutex("q"))
	eventually(t, testTimeout, "all masters keep the lock", func() bool { return m.keep("q") == 3 })
	m.direct[1].FlushAll(context.Background())
	within(t, testTimeout, "a renewal", s.renewed)
	eventually(t, testTimeout, "the lost claim is put back", func() bool { return m.keep("q") == 3 })

	m.direct[0].FlushAll(context.Background())
	m.direct[2].FlushAll(context.Background())
	if got := within(t, testTimeout, "loss of the majority", s.lost); got != h {
		t.Errorf("lost %v, want the hold", got)
	}
	if err := h.Release(context.Background()); !errors.Is(err, ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
}

// Contenders split the vote again and again, and are all served in the end.
func TestQuorumContenders(t *testing.T) {
	t.Parallel()
	m := startMasters(t, 3, Options{})
	other := m.another(t, Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	inside := make(chan struct{}, 1)
	errs := make(chan error, 10)
	for i := range 10 {
		c := []*Client{m.client, other}[i%2]
		go func() {
			h, err := c.Mutex("q").Acquire(ctx)
			if err != nil {
				errs <- err
				return
			}
			select {
			case inside <- struct{}{}:
				<-inside
			default:
				err = fmt.Errorf("two inside")
			}
			errs <- errors.Join(err, h.Release(ctx))
		}()
	}
	for range 10 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}
