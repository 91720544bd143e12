package lock

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// BenchmarkPair is one acquire and one release of an uncontended lock.
func BenchmarkPair(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			rdb := redis.NewClient(&redis.Options{Addr: startRedis(b).Addr, PoolSize: 100, ContextTimeoutEnabled: true})
			defer rdb.Close()
			c := newTestClient(b, rdb, Options{})
			spread(b, n, func(ctx context.Context, name string) error {
				h, err := c.Mutex(name).Acquire(ctx)
				if err != nil {
					return err
				}
				return h.Release(ctx)
			})
		})
	}
}

// BenchmarkRaw is the baseline: a bare SET NX PX and a bare EVALSHA that compares and
// deletes.
func BenchmarkRaw(b *testing.B) {
	del := redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			rdb := startRedis(b).Dial(b)
			spread(b, n, func(ctx context.Context, name string) error {
				if err := rdb.Do(ctx, "SET", name, "me", "NX", "PX", 30000).Err(); err != nil {
					return err
				}
				return del.Run(ctx, rdb, []string{name}, "me").Err()
			})
		})
	}
}

// spread runs pair b.N times in n goroutines, each with a key of its own.
func spread(b *testing.B, n int, pair func(ctx context.Context, name string) error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan error, n)
	for i := range n {
		go func() {
			name := fmt.Sprintf("bench-%d", i)
			for left.Add(-1) >= 0 {
				if err := pair(ctx, name); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range n {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// The caller of an uncontended lock sends its requests itself, with few allocations.
func TestPairAllocates(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: startRedis(t).Addr, ContextTimeoutEnabled: true})
	defer rdb.Close()
	c := newTestClient(t, rdb, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := math.Inf(1)
	for range 100 { // the least: allocations of other goroutines, and for emptied pools, come on top
		n = min(n, testing.AllocsPerRun(10, func() {
			h, err := c.Mutex("job").Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			release(t, h)
		}))
	}
	most := 21.0
	if race.Enabled { // then a sync.Pool drops some of its items on purpose
		most = 22
	}
	if n > most {
		t.Errorf("%v allocations for an acquire and a release, want %v or fewer", n, most)
	}
}
