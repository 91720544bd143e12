package sim_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/internal/cluster/sim"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/bubble"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// world is the environment of a test in its bubble.
type world struct {
	*sim.Cluster
	t    *testing.T
	ctx  context.Context // in the slot of "test"
	self *network.Actor

	mu      sync.Mutex
	clients []redis.UniversalClient
}

// simulate runs f with a cluster in a new bubble.
func simulate(t *testing.T, cfg sim.Config, f func(w *world)) {
	t.Helper()
	// go-redis keeps timers in a pool of its package; the garbage collector removes timers of another bubble.
	runtime.GC()
	runtime.GC()
	redis.SetLogger(quiet{})
	err := bubble.Run(func() {
		c, err := sim.Start(context.Background(), cfg)
		if err != nil {
			t.Error(err)
			return
		}
		w := &world{Cluster: c, t: t, self: c.Actor("test")}
		w.ctx = network.With(context.Background(), w.self)
		w.self.Turn()
		defer func() {
			for _, c := range w.clients {
				_ = c.Close()
			}
			if err := c.Close(w.ctx); err != nil {
				t.Error(err)
			}
		}()
		f(w)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pass sleeps in virtual time.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
}

func (w *world) keep(c redis.UniversalClient) redis.UniversalClient {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients = append(w.clients, c)
	return c
}

// at is a client of actor a at one server.
func (w *world) at(a *network.Actor, addr string) redis.UniversalClient {
	return w.keep(redis.NewClient(&redis.Options{
		Addr: addr, Dialer: a.Dial, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, PoolSize: 64,
		DialTimeout: 500 * time.Millisecond, ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}))
}

// client is a client of actor i at the master that the endpoints name.
func (w *world) client(i int) redis.UniversalClient {
	return w.at(w.Client(i), w.Endpoints(i).Addrs[0])
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Errorf("at %v: %v", w.Now(), err)
	}
}

// quiet keeps go-redis from writing about every lost connection.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
