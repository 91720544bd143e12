package sim_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/lock"
)

// locks is client i of package lock, as its users would make it.
func (w *world) locks(i int) *lock.Client {
	w.t.Helper()
	o := lock.Options{Lease: 10 * time.Second, Rand: rand.NewPCG(7, uint64(i))}
	var c *lock.Client
	var err error
	if w.Topology().Kind == cluster.Quorum {
		var all []redis.UniversalClient
		for _, addr := range w.Endpoints(i).Addrs {
			all = append(all, w.at(w.Client(i), addr))
		}
		c, err = lock.NewQuorum(o, all...)
	} else if w.Topology().Kind == cluster.Sharded {
		c, err = lock.New(w.keep(redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: w.Endpoints(i).Addrs, Dialer: w.Client(i).Dial, DialerRetries: 1, PoolSize: 64,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})), o)
	} else {
		c, err = lock.New(w.client(i), o)
	}
	w.ok(err)
	return c
}

// tally counts grants, and how often two held at once.
type tally struct {
	mu      sync.Mutex
	holders int
	grants  int
	doubles int
}

func (y *tally) add(n int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.holders += n; n > 0 {
		y.grants++
		if y.holders > 1 {
			y.doubles++
		}
	}
}

// compete has every client lock, hold and release the same mutex until the end.
func compete(w *world, until time.Duration, hold time.Duration) *tally {
	y := &tally{}
	var all sync.WaitGroup
	for i := range 3 {
		c, a := w.locks(i), w.Client(i)
		all.Go(func() {
			a.Turn()
			defer func() { w.ok(c.Close(context.Background())) }()
			for w.Now() < until {
				h, err := take(c)
				if err != nil {
					pass(20 * time.Millisecond)
					continue
				}
				y.add(1)
				select {
				case <-h.Done():
				case <-time.After(hold):
				}
				a.AwaitThaw()
				y.add(-1)
				_ = h.Release(context.Background())
			}
		})
	}
	all.Wait()
	w.self.Turn()
	return y
}

// take does not wait for the lock, but for the servers.
func take(c *lock.Client) (*lock.Hold, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return c.Mutex("orders").TryAcquire(ctx)
}

func TestTheLockKeepsItsPromise(t *testing.T) {
	for name, topology := range map[string]cluster.Topology{
		"single": {Kind: cluster.Single}, "sentinel": {Kind: cluster.Sentinel}, "quorum": {Kind: cluster.Quorum},
		"cluster": {Kind: cluster.Sharded},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, sim.Config{Topology: topology, Actors: 3}, func(w *world) {
				y := compete(w, w.Now()+20*time.Second, 100*time.Millisecond)
				if y.doubles > 0 || y.grants < 100 {
					t.Errorf("%d grants, %d while another held", y.grants, y.doubles)
				}
			})
		})
	}
}

// TestTheLockUnderFaults: faults that a lock with a lease survives, and faults that it does not.
func TestTheLockUnderFaults(t *testing.T) {
	for name, c := range map[string]struct {
		topology cluster.Topology
		breakage func(w *world)
		broken   bool
	}{
		"quorum, one master dies":          {cluster.Topology{Kind: cluster.Quorum}, dies, false},
		"single, the server is paused":     {cluster.Topology{Kind: cluster.Single}, pausesServer, false},
		"single, a clock jumps":            {cluster.Topology{Kind: cluster.Single}, jumps, true},
		"single, restarted without a disk": {cluster.Topology{Kind: cluster.Single}, forgets, true},
		"sentinel, the last write is lost": {cluster.Topology{Kind: cluster.Sentinel}, losesTail, true},
		"sentinel, failover with lag zero": {cluster.Topology{Kind: cluster.Sentinel}, dies, false},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, sim.Config{Topology: c.topology, Actors: 3}, func(w *world) {
				go func() {
					a := w.Actor("nemesis")
					a.Turn()
					pass(2 * time.Second)
					c.breakage(w)
				}()
				y := compete(w, w.Now()+40*time.Second, 8*time.Second)
				if y.doubles > 0 != c.broken || y.grants < 4 {
					t.Errorf("%d grants, %d while another held, want broken %v", y.grants, y.doubles, c.broken)
				}
			})
		})
	}
}

func (w *world) nemesis() context.Context {
	return network.With(context.Background(), w.Actor("nemesis"))
}

func dies(w *world) { w.ok(w.Kill(w.nemesis(), "n1")) }

func pausesServer(w *world) {
	w.ok(w.Pause(w.nemesis(), "n1"))
	pass(500 * time.Millisecond)
	w.ok(w.Resume(w.nemesis(), "n1"))
}

func jumps(w *world) {
	w.ok(w.SetClock(w.nemesis(), "n1", cluster.Clock{Offset: 11 * time.Second}))
}

func forgets(w *world) {
	w.ok(w.Kill(w.nemesis(), "n1"))
	w.ok(w.Restart(w.nemesis(), "n1"))
}

func losesTail(w *world) {
	for _, from := range []string{"n2", "n3"} {
		w.rule(cluster.Link{From: from, To: "n1"}, cluster.Back, cluster.Hold)
	}
	pass(9 * time.Second) // until another has the lock, of which the replicas know nothing
	dies(w)
}

// TestTheLockRepeatsItself: the whole of the library under a failover, twice.
func TestTheLockRepeatsItself(t *testing.T) {
	run := func() (hash uint64) {
		simulate(t, sim.Config{Seed: 5, Topology: cluster.Topology{Kind: cluster.Sentinel}, Actors: 3}, func(w *world) {
			go func() {
				w.Actor("nemesis").Turn()
				pass(2 * time.Second)
				dies(w)
			}()
			compete(w, w.Now()+12*time.Second, 300*time.Millisecond)
			hash = w.Hash()
		})
		return hash
	}
	want := run()
	for i := range 9 {
		if got := run(); got != want {
			t.Errorf("run %d: hash %x, the first %x", i, got, want)
		}
	}
}
