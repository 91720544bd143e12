package lock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// published is how often scripts have said that a lock is free.
func published(t testing.TB, rdb *redis.Client) int {
	t.Helper()
	info, err := rdb.InfoMap(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, command := range []string{"cmdstat_publish", "cmdstat_spublish"} {
		n := 0
		_, _ = fmt.Sscanf(info["Commandstats"][command], "calls=%d", &n)
		calls += n
	}
	return calls
}

// A release says that the lock is free when somebody waits, here or elsewhere, and
// only then: in a cluster, such a message goes to every node (redisson#3349).
func TestOnlyWhoIsWaitedForPublishes(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	rdb := s.dial(t)
	never := Options{PollMax: time.Hour} // without the message nobody would be served
	here, there := newTestClient(t, rdb, never), newTestClient(t, s.dial(t), never)
	for range 3 {
		release(t, acquire(t, here.Mutex("job"), AcquireOptions{}))
	}
	h := acquire(t, here.Mutex("job"), AcquireOptions{})
	if _, err := there.Mutex("job").TryAcquire(context.Background(), AcquireOptions{}); err == nil {
		t.Fatal("granted twice")
	}
	release(t, h)
	if n := published(t, rdb); n != 0 {
		t.Errorf("%d messages, and nobody waited", n)
	}
	for name, c := range map[string]*Client{"another client": there, "the same client": here} {
		before := published(t, rdb)
		h := acquire(t, here.Mutex("job"), AcquireOptions{})
		served := wait(context.Background(), t, c.Mutex("job"), AcquireOptions{})
		waitSubscribed(t, c, "{job}:free")
		release(t, h)
		release(t, within(t, prompt, name+" is served", served))
		if n := published(t, rdb) - before; n == 0 {
			t.Errorf("%s: nothing was said", name)
		}
	}
}

// The mark that a waiter has left goes with the hash that it was left in: who is
// granted the lock after that is told of those who still wait, whoever they are.
func TestMarksOutliveHandovers(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	ctx, cancel := context.WithTimeout(context.Background(), prompt)
	defer cancel()
	var wg sync.WaitGroup
	for range 4 {
		c := newTestClient(t, s.dial(t), Options{PollMax: time.Hour})
		for range 10 {
			wg.Go(func() {
				for range 5 {
					h, err := c.Mutex("job").Acquire(ctx, AcquireOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					if err := h.Release(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
}

// Whoever takes and releases one lock again and again leaves one tombstone behind, not
// one for each time; and the answer to a release that is asked for again is still there.
func TestTombstonesDoNotPileUp(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.addr)
	direct := s.dial(t)
	c := newTestClient(t, dialRedis(t, p.addr), Options{})
	pair := func() {
		t.Helper()
		release(t, acquire(t, c.Mutex("job"), AcquireOptions{}))
	}
	tombstones := func() int {
		n := 0
		for _, key := range direct.Keys(context.Background(), "*").Val() {
			if strings.HasPrefix(key, "{job}:tombstone:") {
				n++
			}
		}
		return n
	}
	for range 20 {
		pair()
	}
	if n := tombstones(); n != 1 {
		t.Errorf("%d tombstones after 20 releases, want 1", n)
	}
	h := acquire(t, c.Mutex("job"), AcquireOptions{})
	p.loseNext.Store(1)
	release(t, h)
	pair()
	// An acquire that may still be on its way must find the tombstone of its hold, so that stays.
	p.loseNext.Store(1)
	late := acquire(t, c.Mutex("job"), AcquireOptions{})
	release(t, late)
	pair()
	pair()
	if n := direct.Exists(context.Background(), late.claim.tombstoneKey()).Val(); n != 1 {
		t.Error("the tombstone of a hold whose acquire was sent twice has gone")
	}
}
