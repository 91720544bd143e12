package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// mixed is a random mix of operations, most of which the other workloads do not use. Half of the sequences are on a
// key that no other client uses: there each answer is certain, and the checkers can judge it.
var mixedSpec = Spec{
	Name: "mixed",
	Doc: "every client in a loop: one of the sequences that the lock can do (nested holds, tries, renewals, releases " +
		"of locks that are not held, forced releases, inspections, expired holds, short waits, reads and writes, several " +
		"permits or keys), on a key of its own or a shared one.",
	Source: "Groce et al. 2012, Swarm Testing; the methods of java.util.concurrent's and Redisson's locks",
	Uses: client.AllCapabilities().Without(
		client.IsLatch, client.CanDelete, client.PartialRelease, client.Unleased),
	Client: mixedClient,
}

// sequence is a fixed series of operations of one client.
type sequence struct {
	name  string
	needs client.Capabilities
	not   client.Capabilities // it has no meaning for a lock that has one of these
	run   func(m *mix)
}

// sequences are all of them.
func sequences() []sequence {
	return slices.Concat(holdSequences(), renewSequences(), releaseSequences(), sharedSequences(), manySequences(),
		forcedSequences(), sizedSequences(), inspectSequences())
}

// allSequences are those of every workload, those of clients that share lock objects, and those that run only if a
// scenario names them.
func allSequences() []sequence {
	return slices.Concat(sequences(), programSequences(), namedSequences())
}

// sequencesFor are the sequences that a lock supports, in a workload with the parameters of one client: at least the
// plain acquire and release.
func sequencesFor(can client.Capabilities, p Params) (list []sequence) {
	names, others := p.sequenceNames()
	all := sequences()
	switch {
	case len(names) > 0 && !others:
		all = allSequences()
	case p.PerInstance > 1:
		all = append(all, programSequences()...)
	}
	for _, s := range all {
		if len(names) > 0 && slices.Contains(names, s.name) == others {
			continue
		}
		if can.Has(s.needs...) && len(can.Missing(s.not...)) == len(s.not) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return []sequence{{name: "plain", run: plain}}
	}
	return list
}

// allBut begins a list of sequences to leave out.
const allBut = "all but "

// sequenceLists are the lists in Sequences.
func (p Params) sequenceLists() []string { return strings.Split(p.Sequences, ";") }

// ofClient is p with the list of sequences of client i alone.
func (p Params) ofClient(i int) Params {
	lists := p.sequenceLists()
	p.Sequences = strings.TrimSpace(lists[i%len(lists)])
	return p
}

// sequenceNames are the names in Sequences, which is one list; others: those are left out.
func (p Params) sequenceNames() (names []string, others bool) {
	list, others := strings.CutPrefix(p.Sequences, allBut)
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names, others
}

// validateSequences refuses a name that no sequence has.
func (p Params) validateSequences() error {
	switch {
	case p.Sequences == "" || p.Kind == latchSpec.Name && p.Sequences == meeting:
		return nil
	case p.Kind == latchSpec.Name:
		return fmt.Errorf("workload: %s has no sequence %q; known: %s", p.Kind, p.Sequences, meeting)
	case p.Kind != mixedSpec.Name:
		return fmt.Errorf("workload: %s has no sequences; only %s and %s have them", p.Kind, mixedSpec.Name, latchSpec.Name)
	}
	var known []string
	for _, s := range allSequences() {
		known = append(known, s.name)
	}
	lists := len(p.sequenceLists())
	for i := range lists {
		names, _ := p.ofClient(i).sequenceNames()
		if len(names) == 0 && lists > 1 {
			return fmt.Errorf("workload: list %d of the sequences is empty: name one, or leave out a semicolon", i+1)
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				return fmt.Errorf("workload: no sequence is called %q; known are %s", name, strings.Join(known, ", "))
			}
		}
	}
	return nil
}

// mix is one client of workload mixed, within one sequence.
type mix struct {
	Env
	ctx  context.Context
	stop <-chan struct{}
	keys []string // shared
	own  string   // key of this client alone
	// spoiled: a forced release of own has an unknown outcome. It may take effect at any time, so grants of that key
	// cannot be judged.
	spoiled bool
	key     string // of the sequence
}

func mixedClient(ctx context.Context, stop <-chan struct{}, e Env) {
	m := &mix{Env: e, ctx: ctx, stop: stop, keys: e.Params.sharedKeys(), own: e.Params.ownKey(e.Session.Number())}
	list := sequencesFor(m.watch(), e.Params.ofClient(e.Session.Number()))
	defer m.Session.awaitEnds(ctx)
	if e.Params.SetUp && m.Can.Has(client.CanResize) {
		m.setUp()
	}
	for running(ctx, stop) && e.Session.Alive() {
		m.key = m.own
		if m.chance(2) || m.spoiled {
			m.key = m.keys[e.Rand.IntN(len(m.keys))]
		}
		if s := list[e.Rand.IntN(len(list))]; !slices.Contains(s.needs, client.ReportsLoss) || m.knowsLosses() {
			s.run(m)
		}
		pause(ctx, stop, grain+e.Params.Think+random(e, e.Params.Jitter))
	}
}

// setUp gives the client's own semaphore its size, and its share of the others.
func (m *mix) setUp() {
	m.Session.Resize(m.ctx, m.own, m.limit())
	for i := m.Session.Number(); i < len(m.keys); i += m.Params.Clients {
		m.Session.Resize(m.ctx, m.keys[i], m.limit())
	}
}

// watch makes the session of a lock that reports no loss watch the validity, and returns what the lock can do then.
func (m *mix) watch() client.Capabilities {
	if m.Can.Has(client.ReportsLoss) || m.Can.Has(client.Unleased) {
		return m.Can
	}
	m.Session.watchValidity()
	return m.Can.With(client.ReportsLoss)
}

// knowsLosses reports whether the client learns that a hold has ended with its lease.
func (m *mix) knowsLosses() bool { return m.Can.Has(client.ReportsLoss) || m.Session.knowsLosses() }

// chance is true one time out of n.
func (m *mix) chance(n int) bool { return m.Rand.IntN(n) == 0 }

// over says that the client should finish what it holds.
func (m *mix) over() bool { return !running(m.ctx, m.stop) || !m.Session.Alive() }

// pause is not cut short at the end of the run: all clients would act at that instant, in any order.
func (m *mix) pause(d time.Duration) { pause(m.ctx, nil, d) }

// wait is for a random part of a hold.
func (m *mix) wait() { m.pause(grain + random(m.Env, m.Params.Hold)) }

// owner is a new owner.
func (m *mix) owner() string { return m.Session.nextOwner() }

// lease is the workload's lease or, some of the time, none if the lock renews by itself.
func (m *mix) lease() time.Duration {
	if m.Params.Lease == 0 || m.Can.Has(client.RenewsItself) && m.chance(4) {
		return 0
	}
	return m.Params.Lease
}

// short is a lease that ends within a sequence. On a shared key it is longer than a reply should take: a grant that
// arrives after its lease is given back and requested again, and others are refused meanwhile for no reason that the
// history shows.
func (m *mix) short() time.Duration {
	lease := 100*time.Millisecond + random(m.Env, 200*time.Millisecond)
	if m.key != m.own {
		lease += 300 * time.Millisecond
	}
	return lease
}

// request is an acquire of the key of the sequence by owner: of all permits of a semaphore, so that it excludes, or to
// write, sometimes to read.
func (m *mix) request(owner string, lease time.Duration) client.Acquire {
	a := m.writing(owner, lease)
	if m.Can.Has(client.SharesReads) && m.chance(4) {
		a.Mode = "read"
	}
	return a
}

// writing is a request that excludes all others.
func (m *mix) writing(owner string, lease time.Duration) client.Acquire {
	a := client.Acquire{Key: m.key, Owner: owner, Lease: lease}
	switch {
	case m.Can.Has(client.HasPermits):
		a.Permits, a.Limit = m.limit(), m.limit()
	case m.Can.Has(client.SharesReads):
		a.Mode = "write"
	}
	return a
}

// limit is the number of permits of a semaphore.
func (m *mix) limit() int { return max(1, m.Params.Permits) }

// asks, writes and reads are requests of a new owner with the lease of the workload.
func (m *mix) asks() client.Acquire   { return m.request(m.owner(), m.lease()) }
func (m *mix) writes() client.Acquire { return m.writing(m.owner(), m.lease()) }
func (m *mix) reads() client.Acquire  { return m.reading(m.owner(), m.lease()) }

// brief is a request with a lease that ends within a sequence.
func (m *mix) brief() client.Acquire { return m.request(m.owner(), 2*m.short()) }

// again is the request for h once more, by its owner.
func (m *mix) again(h Hold) client.Acquire {
	a := h.about()
	a.Lease = h.Lease
	return a
}

// holding is a sequence that begins with a hold, and ends if the acquire is not granted.
func holding(request func(m *mix) client.Acquire, then func(m *mix, h Hold)) func(m *mix) {
	return func(m *mix) {
		if h := m.acquire(request(m)); h.held() {
			then(m, h)
		}
	}
}

// acquire waits for the lock; not for long on the client's own key, where nobody else can release it.
func (m *mix) acquire(a client.Acquire) Hold {
	a.Wait = m.Env.wait()
	if m.key == m.own {
		a.Wait = min(a.Wait, 2*m.Params.Hold+grain)
	}
	h := m.await(a)
	if !h.held() {
		m.pause(backoff(m.Env))
	}
	return h
}

// try is a try, or an acquire that hardly waits if the lock has none.
func (m *mix) try(a client.Acquire) Hold {
	if m.Can.Has(client.CanTry) {
		h, answer := m.Session.Try(m.ctx, a)
		return granted(h, answer.Outcome)
	}
	a.Wait = grain
	return m.await(a)
}

// await waits for the lock as long as the request says.
func (m *mix) await(a client.Acquire) Hold { return granted(m.Session.Acquire(m.ctx, a)) }

// granted is the hold of a request, or none if it was not granted.
func granted(h Hold, outcome history.Type) Hold {
	if outcome != history.OK {
		return Hold{}
	}
	return h
}

// patient is a request that waits as long as the workload says.
func (m *mix) patient(a client.Acquire) client.Acquire {
	a.Wait = m.Env.wait()
	return a
}

// several is a request for some of the shared keys.
func (m *mix) several(a client.Acquire) client.Acquire {
	a.Keys = m.some(m.keys)
	a.Key = a.Keys[0]
	return a
}

// use waits for the lock, keeps it for as long as keep takes, and releases it.
func (m *mix) use(a client.Acquire, keep func()) {
	if h := m.await(a); h.held() {
		keep()
		m.release(h)
	}
}

// sometimes makes a request, or none, each half of the time.
func (m *mix) sometimes(send func(client.Acquire) Hold, request func() client.Acquire) (h Hold) {
	if m.chance(2) {
		h = send(request())
	}
	return h
}

// release releases a hold, if it is one.
func (m *mix) release(h Hold) {
	if h.held() {
		m.Session.Release(m.ctx, h)
	}
}

// visit tries to acquire the lock for another owner, which is refused if it is held, and releases it if it was granted.
// Of a semaphore it requests some of the permits. Sometimes it first asks who holds the lock.
func (m *mix) visit() {
	if m.Can.Has(client.CanInspect) && m.chance(4) {
		m.inspect()
	}
	a := m.asks()
	if m.Can.Has(client.HasPermits) {
		a.Permits = 1 + m.Rand.IntN(a.Limit)
	}
	m.tryOnce(a)
}

// tryOnce tries a, and releases it if it was granted. No other operation of the client has the same instant: in virtual
// time a release may return when the next try begins, and operations of one instant have no certain order.
func (m *mix) tryOnce(a client.Acquire) {
	m.pause(grain)
	m.release(m.try(a))
	m.pause(grain)
}

// work is a critical section for some part of a hold. A writer writes the guarded counter.
func (m *mix) work(h Hold) {
	read := m.Guard.Read(h.Key)
	worked := m.Session.Work(m.ctx, h, grain+random(m.Env, m.Params.Hold))
	if worked == history.OK && h.Mode != "read" && !m.Can.Has(client.HasPermits) {
		m.Session.Touch(h, m.Guard, read)
	}
}
