// Package mixed is the workload of random sequences of operations, for locks of every kind, most of them in situations
// that a program seldom meets. It is not a promise.
//
// A sequence is a function of one client. Each file has the sequences about one subject, and a table of them.
package mixed

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// Spec is the row of the catalog: a random mix of operations, most of which the other workloads do not use. Half of the
// sequences are on a key that no other client uses: there each answer is certain, and the checkers can judge it.
func Spec() workload.Spec {
	return workload.Spec{
		Name: workload.Mixed,
		Doc: "every client in a loop: one of the sequences that the lock can do (nested holds, tries, renewals, releases " +
			"of locks that are not held, forced releases, inspections, expired holds, short waits, reads and writes, several " +
			"permits or keys), on a key of its own or a shared one.",
		Source:         "Groce et al. 2012, Swarm Testing; the methods of java.util.concurrent's and Redisson's locks",
		Uses:           promise.All.Without(promise.Latch | promise.Unleased),
		CheckSequences: checkSequences, MissingForSequences: missingForSequences, Client: run,
	}
}

// sequence is a fixed series of operations of one client.
type sequence struct {
	name  string
	needs promise.Set
	run   func(m *mix)
}

// sequences are all of them.
func sequences() []sequence {
	return slices.Concat(holdSequences(), renewSequences(), releaseSequences(), sharedSequences(), manySequences(),
		forcedSequences(), sizedSequences(), inspectSequences())
}

// allSequences are the sequences of every workload, of clients that share lock objects, and the ones that run only if a
// scenario names them.
func allSequences() []sequence {
	return slices.Concat(sequences(), programSequences(), namedSequences())
}

// sequencesFor are the sequences that a lock supports, in a workload with the parameters of one client: at least the
// plain acquire and release.
func sequencesFor(can promise.Set, p workload.Params) (list []sequence) {
	names, others := sequenceNames(p)
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
		if can.Has(s.needs) {
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
func sequenceLists(p workload.Params) []string { return strings.Split(p.Sequences, ";") }

// ofClient is p with the list of sequences of client i alone.
func ofClient(p workload.Params, i int) workload.Params {
	lists := sequenceLists(p)
	p.Sequences = strings.TrimSpace(lists[i%len(lists)])
	return p
}

// sequenceNames are the names in Sequences, which is one list; others: the omitted ones.
func sequenceNames(p workload.Params) (names []string, others bool) {
	list, others := strings.CutPrefix(p.Sequences, allBut)
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names, others
}

// checkSequences refuses a name that no sequence has.
func checkSequences(p workload.Params) error {
	known := SequenceNames(promise.All)
	lists := len(sequenceLists(p))
	for i := range lists {
		names, _ := sequenceNames(ofClient(p, i))
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

// missingForSequences are the promises that a lock lacks for the first of the sequences that p names, if it supports
// none of them.
func missingForSequences(p workload.Params, can promise.Set) (missing promise.Set) {
	all := allSequences()
	for i := range sequenceLists(p) {
		names, others := sequenceNames(ofClient(p, i))
		if others {
			return 0
		}
		for _, name := range names {
			k := slices.IndexFunc(all, func(s sequence) bool { return s.name == name })
			if k < 0 || can.Has(all[k].needs) {
				return 0
			}
			missing = cmp.Or(missing, all[k].needs.Without(can))
		}
	}
	return missing
}

// mix is one client of workload mixed, within one sequence.
type mix struct {
	workload.Actor
	// spoiled: a forced release of the client's own key has an unknown outcome. It may take effect at any time, so grants
	// of that key cannot be judged, and the client makes plain sequences instead of forced releases.
	spoiled bool
}

func run(ctx context.Context, stop <-chan struct{}, e workload.Env) {
	m := &mix{Actor: workload.NewActor(ctx, stop, e)}
	list := sequencesFor(m.WatchValidity(), ofClient(e.Params, e.Session.Number()))
	defer m.Session.AwaitEnds(ctx)
	if e.Params.SetUp && m.Can.Has(promise.ManagesPermits) {
		m.setUp()
	}
	for workload.Running(ctx, stop) && e.Session.Alive() {
		m.Key = m.OwnKey
		if m.Chance(2) || m.spoiled {
			m.Key = m.Keys[e.Rand.IntN(len(m.Keys))]
		}
		switch s := list[e.Rand.IntN(len(list))]; {
		case m.spoiled && s.needs.Has(promise.ForceRelease):
			plain(m)
		case !s.needs.Has(promise.ReportsLoss) || m.KnowsLosses():
			s.run(m)
		}
		workload.Pause(ctx, stop, workload.Grain+e.Params.Think+e.Random(e.Params.Jitter))
	}
}

// setUp gives the client's own semaphore its size, and its share of the others.
func (m *mix) setUp() {
	m.Session.Resize(m.Context, m.OwnKey, m.Limit())
	for i := m.Session.Number(); i < len(m.Keys); i += m.Params.Clients {
		m.Session.Resize(m.Context, m.Keys[i], m.Limit())
	}
}

// request is an acquire of the key of the sequence by owner: of all permits of a semaphore, so that it excludes, or to
// write, sometimes to read.
func (m *mix) request(owner string, lease time.Duration) client.Acquire {
	a := m.Writing(owner, lease)
	if m.Can.Has(promise.ReadWrite) && m.Chance(4) {
		a.Mode = "read"
	}
	return a
}

// newRequest is a request of a new owner with the lease of the workload.
func (m *mix) newRequest() client.Acquire { return m.request(m.NewOwner(), m.Lease()) }

// newShortLease is a request with a lease that ends within a sequence.
func (m *mix) newShortLease() client.Acquire { return m.request(m.NewOwner(), 2*m.ShortLease()) }

// again is the request for h once more, by its owner.
func (m *mix) again(h session.Hold) client.Acquire {
	a := h.Request()
	a.Lease = h.Lease
	return a
}

// holding is a sequence that begins with a hold, and ends if the acquire is not granted.
func holding(request func(m *mix) client.Acquire, then func(m *mix, h session.Hold)) func(m *mix) {
	return func(m *mix) {
		if h := m.Acquire(request(m)); h.Granted() {
			then(m, h)
		}
	}
}

// sometimes makes a request, or none, each half of the time.
func (m *mix) sometimes(send func(client.Acquire) session.Hold, request func() client.Acquire) (h session.Hold) {
	if m.Chance(2) {
		h = send(request())
	}
	return h
}

// visit tries to acquire the lock for another owner, which is refused if it is held, and releases it if it was granted.
// Of a semaphore it requests some of the permits. Sometimes it first asks who holds the lock.
func (m *mix) visit() {
	if m.Can.Has(promise.Inspect) && m.Chance(4) {
		m.inspect()
	}
	a := m.newRequest()
	if m.Can.Has(promise.Permits) {
		a.Permits = 1 + m.Rand.IntN(a.Limit)
	}
	m.tryOnce(a)
}

// tryOnce tries a, and releases it if it was granted. No other operation of the client has the same instant: in virtual
// time a release may return when the next try begins, and operations of one instant have no certain order.
func (m *mix) tryOnce(a client.Acquire) {
	m.Pause(workload.Grain)
	m.Release(m.Try(a))
	m.Pause(workload.Grain)
}

// work is a critical section for some part of a hold. A writer writes the guarded counter.
func (m *mix) work(h session.Hold) {
	read := m.Guard.Read(h.Key)
	worked := m.Session.Work(m.Context, h, workload.Grain+m.Random(m.Params.Hold))
	if worked == history.OK && h.Mode != "read" && !m.Can.Has(promise.Permits) {
		m.Session.Touch(h, m.Guard, read)
	}
}

// SequenceNames are the names of all sequences that a lock with these promises supports, for Params.Sequences.
func SequenceNames(can promise.Set) (names []string) {
	for _, s := range allSequences() {
		if can.Has(s.needs) {
			names = append(names, s.name)
		}
	}
	return names
}
