package lock

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

func TestFairQueueAndForce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	s := newHooks()
	o := s.options(watchedLease)
	o.PollMax = time.Hour // nor do waiters need heartbeats
	c := newTestClient(t, rdb, o)
	m := c.FairMutex("force")
	if was, err := m.ForceRelease(ctx); was || err != nil {
		t.Errorf("it is free: %v, %v", was, err)
	}
	h := acquire(t, m)
	served := inTurn(t, rdb, m, "a b", "c")
	if got, err := m.Queue(ctx); err != nil || !cmp.Equal(got, []string{"a b", "c"}) {
		t.Errorf("queue %q, %v", got, err)
	}
	if was, err := m.ForceRelease(ctx); !was || err != nil {
		t.Errorf("force: %v, %v", was, err)
	}
	first := within(t, testTimeout, "the first waiter", served[0])
	if lost := within(t, testTimeout, "the loss", s.lost); lost != h {
		t.Errorf("lost %v, want the hold that was released by force", lost.Owner())
	}
	release(t, first)
	release(t, within(t, testTimeout, "the second waiter", served[1]))
	rdb.Set(ctx, "force", "mine", 0)
	if _, err := m.ForceRelease(ctx); !errors.Is(err, ErrForeign) || rdb.Get(ctx, "force").Val() != "mine" {
		t.Errorf("foreign key: %v, want ErrForeign and the key untouched", err)
	}
}

func TestRWInspectAndForce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	rw := c.RW("state")
	state := func() RWState {
		t.Helper()
		s, err := rw.Inspect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if (s.Remaining > 0) != (s.Writes+len(s.Readers) > 0) || s.Remaining > 30*time.Second {
			t.Errorf("remaining %v for %+v", s.Remaining, s)
		}
		s.Remaining = 0
		return s
	}
	none := map[string]int{}
	if diff := cmp.Diff(RWState{Readers: none}, state()); diff != "" {
		t.Error(diff)
	}
	w := acquire(t, rw.Write(), WithOwner("x y"), WithReentry())
	acquire(t, rw.Write(), WithOwner("x y"), WithReentry())
	acquire(t, rw.Read(), WithOwner("x y"), WithReentry())
	served := []<-chan *Hold{acquireLater(ctx, t, rw.PreferWriters().Write())}
	asleep(t, c, "{state}:write", 1)
	want := RWState{Writer: "x y", Writes: 2, Readers: map[string]int{"x y": 1}, Token: w.token, Intents: 1}
	if diff := cmp.Diff(want, state()); diff != "" {
		t.Error(diff)
	}
	if was, err := rw.ForceRelease(ctx); !was || err != nil {
		t.Errorf("force: %v, %v", was, err)
	}
	next := within(t, testTimeout, "the waiting writer", served[0])
	if err := w.Release(ctx); !errors.Is(err, ErrNotOwner) {
		t.Errorf("release of what was forced: %v, want ErrNotOwner", err)
	}
	release(t, next)
	if was, err := rw.ForceRelease(ctx); was || err != nil {
		t.Errorf("it is free: %v, %v", was, err)
	}
}

// clusterOfOne is a cluster whose one master has all slots: it refuses scripts that touch
// two of them.
func clusterOfOne(t *testing.T) *server {
	t.Helper()
	_, bus, _ := net.SplitHostPort(freeAddr(t))
	s := startRedis(t, "--cluster-enabled", "yes", "--cluster-port", bus)
	rdb := s.Dial(t)
	if err := rdb.ClusterAddSlotsRange(context.Background(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, testTimeout, "the cluster is complete", func() bool {
		return rdb.Set(context.Background(), "probe", 1, time.Second).Err() == nil
	})
	return s
}

// A renewal of locks in different slots was refused, and all of them ended (also
// redisson#7116). Each kind works in a cluster, and behind a proxy that hides that it is
// one.
// Regression: redisson#6867
func TestKindsInAClusterAndBehindAProxy(t *testing.T) {
	t.Parallel()
	addr := clusterOfOne(t).Addr
	direct := dialRedis(t, addr)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
	defer cluster.Close()
	for name, rdb := range map[string]redis.UniversalClient{"cluster": cluster, "hidden": dialRedis(t, addr)} {
		t.Run(name, func(t *testing.T) {
			s := newHooks()
			c := newTestClient(t, rdb, s.options(watchedLease))
			kinds := map[*Hold]bool{}
			for _, key := range []string{"a", "b", "c"} {
				kinds[acquire(t, c.FairMutex("fair-"+key))] = true
				kinds[acquire(t, c.RW("rw-"+key).Read())] = true
				kinds[acquire(t, c.RW("rw-w"+key).Write())] = true
			}
			renewed := map[*Hold]int{}
			for len(renewed) < len(kinds) || least(renewed) < 4 {
				select {
				case h := <-s.renewed:
					renewed[h]++
				case h := <-s.lost:
					t.Fatalf("%s was lost", h.Name())
				}
			}
			served := inTurn(t, direct, c.FairMutex("fair-a"), "next")
			for h := range kinds {
				release(t, h)
			}
			release(t, within(t, testTimeout, "the next", served[0]))
			if len(s.lost) != 0 {
				t.Errorf("%d holds were lost", len(s.lost))
			}
		})
	}
}

func least(counts map[*Hold]int) int {
	low := -1
	for _, n := range counts {
		if low < 0 || n < low {
			low = n
		}
	}
	return low
}
