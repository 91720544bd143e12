package generator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/mixed"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

const ms = time.Millisecond

// shape is a kind of traffic.
type shape struct {
	weight int
	needs  promise.Set // promises that a lock must state
	lacks  promise.Set // promises that a lock must not state
	draw   func(d *draw)
}

// shapes are all kinds of traffic.
func shapes() []shape {
	return []shape{
		{weight: 10, lacks: promise.Latch, draw: (*draw).mix},
		{weight: 8, draw: (*draw).rounds},
		{weight: 6, lacks: promise.Latch | promise.ReadWrite | promise.Permits, draw: loop(workload.Mutex)},
		{weight: 6, needs: promise.ReadWrite, draw: loop(workload.ReadersWriter)},
		{weight: 6, needs: promise.Permits, draw: loop(workload.Semaphore)},
		{weight: 10, needs: promise.Latch, draw: (*draw).latches},
	}
}

// drawTraffic draws the workload and the duration of the run.
func (d *draw) drawTraffic() {
	possible := slices.DeleteFunc(shapes(), func(s shape) bool { return !d.can.Has(s.needs) || d.can.Any(s.lacks) })
	weighted(d, possible, func(s shape) int { return s.weight }).draw(d)
	if d.Topology.Kind == cluster.Sharded && d.chance(30) {
		d.Workload.Tagged = true
	}
}

// mix draws sequences of operations, a few kinds of them or all.
func (d *draw) mix() {
	p := &d.Workload
	p.Kind, p.Clients, p.Keys = workload.Mixed, 2+d.IntN(5), 1+d.IntN(3)
	p.Hold, p.Think = pick(d, 10*ms, 40*ms, 40*ms, 150*ms), pick(d, 5*ms, 10*ms, 10*ms, 60*ms)
	p.Wait = pick(d, 250*ms, 500*ms, time.Second, 2*time.Second, 5*time.Second)
	p.Lease = d.lease(0)
	d.share(20)
	if d.chance(75) {
		p.Sequences = d.sequences()
	}
	if d.can.Has(promise.ManagesPermits) {
		p.SetUp = d.chance(50)
	}
	d.Duration = d.between(3*time.Second, 7*time.Second)
	if d.kinds == 0 { // each client is soon in the same situations again
		d.Duration /= 2
	}
}

// sequences draws some of the sequences that the lock can do: one list for all clients, or two of different clients.
// All have short holds of shared keys among them, so that clients meet.
func (d *draw) sequences() string {
	names := mixed.SequenceNames(d.can)
	lists := make([]string, pick(d, 1, 1, 2, 3))
	for i := range lists {
		some := []string{"plain"}
		for range 1 + d.IntN(6) {
			if name := pick(d, names...); !slices.Contains(some, name) {
				some = append(some, name)
			}
		}
		lists[i] = strings.Join(some, ", ")
	}
	return strings.Join(lists, "; ")
}

// rounds draws rounds in which clients wait, and only the lock can wake them.
func (d *draw) rounds() {
	p := &d.Workload
	p.Kind, p.Clients, p.Keys = workload.Waiters, 3+d.IntN(6), pick(d, 1, 1, 1, 2)
	if d.can.Has(promise.MultiKey) {
		p.Keys = 3
	}
	p.Hold = pick(d, 60*ms, 60*ms, 350*ms)
	p.Think, p.Wait = pick(d, 4*time.Second, 6*time.Second), 3*time.Second
	p.Lease = d.lease(pick(d, time.Second, 10*time.Second, 10*time.Second))
	if d.Options[optionPoll] != "" && d.can.Has(promise.Wakes) && d.chance(80) {
		d.Options[optionPoll] = "20s" // with short polls or leases, a waiter needs no message
	}
	d.share(60)
	d.Duration = time.Duration(4+d.IntN(3)) * p.Think
}

// loop draws clients that acquire, work and release, again and again: many times, or seldom and for long.
func loop(kind string) func(d *draw) {
	return func(d *draw) {
		p := &d.Workload
		p.Kind, p.Clients = kind, pick(d, 3, 4, 4, 5, 6, 7, 8, 24)
		p.Keys = min(pick(d, 1, 1, 2, 4), p.Clients/2) // so that clients meet
		p.Hold = pick(d, 5*ms, 40*ms, 100*ms, 300*ms, time.Second, 2500*ms, 2500*ms)
		p.Think, p.Jitter = min(pick(d, 0, 5*ms, p.Hold, 5*p.Hold), 4*time.Second), pick(d, 0, 0, p.Hold/2)
		p.Wait = pick(d, 250*ms, time.Second, 3*time.Second, 10*time.Second)
		p.Lease = d.lease(2 * (p.Hold + p.Jitter))
		if p.Hold <= 100*ms && d.chance(15) { // clients seldom meet: remains of a request are in nobody's way, and stay
			p.Keys = 2 * p.Clients
		}
		if kind == workload.Semaphore {
			p.Permits = 1 + d.IntN(3)
		}
		if kind == workload.ReadersWriter && d.chance(50) {
			p.Writers = 1 + d.IntN(2)
		}
		if d.share(30); p.Clients > 8 {
			p.PerProcess, p.PerInstance = p.Clients/2, p.Clients/2
		}
		longest := 10 * time.Second
		if p.Hold < 40*ms || p.Clients > 8 { // the same few situations again, in runs that take the longest to simulate
			longest /= 3
		}
		d.Duration = d.between(max((longest/3).Truncate(ms), min(longest, 3*(p.Hold+p.Think))), longest)
	}
}

// latches draws clients that arm, count down and await latches.
func (d *draw) latches() {
	p := &d.Workload
	p.Kind, p.Clients, p.Keys = workload.Latch, 3+d.IntN(3), 1+d.IntN(2)
	p.Hold, p.Think, p.Jitter = pick(d, 20*ms, 40*ms), 5*ms, pick(d, 0, 10*ms, 60*ms)
	p.Wait = pick(d, 500*ms, time.Second, 2*time.Second)
	if d.chance(60) {
		p.Sequences = "meeting"
	}
	d.Duration = d.between(3*time.Second, 6*time.Second)
}

// lease draws the lease that clients request: 0 for a lock without leases, and perhaps for a lock that renews them. It
// is no shorter than least, so that no holder works beyond it.
func (d *draw) lease(least time.Duration) time.Duration {
	if d.can.Any(promise.Unleased|promise.Latch) || d.can.Has(promise.Watchdog) && d.chance(40) {
		return 0
	}
	return max(least, pick(d, 400*ms, time.Second, 2*time.Second, 4*time.Second, 10*time.Second))
}

// outworks reports whether holders depend on renewals: they may work for longer than half of the lease or session that
// the lock renews by itself, and they write to their resource even after a reported loss.
func (d *draw) outworks() bool {
	p := d.Workload
	session := d.Topology.Kind == cluster.ZooKeeper || d.Topology.Kind == cluster.Etcd // as long as the options say
	return (p.Lease == 0 || session) && d.can.Has(promise.Watchdog) && p.Kind != workload.Mixed &&
		2*(p.Hold+p.Jitter) > d.renewedLease()
}

// renewedLease is the lease or the session that the lock renews by itself: at least a second, unless an option says
// otherwise.
func (d *draw) renewedLease() time.Duration {
	session, _ := time.ParseDuration(d.Options["session"])
	return cmp.Or(d.OptionLease(), session, d.Workload.Lease, time.Second)
}

// share makes clients share processes, and perhaps lock objects, with a probability in percent.
func (d *draw) share(percent int) {
	if !d.chance(percent) {
		return
	}
	p := &d.Workload
	if p.Clients%2 == 0 && d.chance(50) {
		p.PerProcess = p.Clients / 2
	} else {
		p.PerProcess = p.Clients
	}
	if p.PerProcess > 1 && d.chance(80) {
		p.PerInstance = p.PerProcess
	}
}
