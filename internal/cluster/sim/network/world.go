// Package network is the simulated network and its time: events in the order that a seed decides, hosts with a program
// each, connections between them with latencies, gates and rules, and the actors that connect and wait. It knows no
// server.
//
// Read [World] and [Actor] first.
package network

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// World is the queue of all future events, ordered by instant, and the lock that guards the whole simulation. A
// timer of the bubble fires at the instant of the next event. All events run on one goroutine, always the same (a
// new one would grow its stack for the first script that it runs). No goroutine sleeps while it holds the lock.
//
// An instant is run in phases: an event runs only when no other goroutine of the bubble can run, and an event that
// has woken a goroutine is followed by the next one only when that goroutine, and all that it has woken in turn, wait
// again. So the actions of a client's goroutines are never concurrent with an event, nor are the effects of two events.
type World struct {
	epoch time.Time // instant 0
	Seed  uint64
	Slots slotTable

	Mu       sync.Mutex
	queue    queue
	count    uint64 // of events ever put into the queue
	timer    *time.Timer
	timerAt  int64         // instant that the timer is set to; never: it is not
	due      chan struct{} // holds one: there is an event that is due; closed by Close
	armed    int64         // instant of the earliest event that the timer or due announces; never: none
	Closed   bool
	Hash     uint64
	Commands int64
	trace    io.Writer
	names    map[string]uint64 // hashes of names
	latency  Span
	sleepers []*sleeper // waiting goroutines, in any order
	Order    *order     // nil: messages arrive when their latencies are over
	woke     bool       // the event has woken a goroutine

	Hosts     []*Host          // by index
	Addresses map[string]*Host // by address, which may move to another host
	Stale     StaleAddress
	Clients   []*Actor          // by number
	others    map[string]*Actor // by name
	Sentinels SentinelAccess    // no hosts: there are no Sentinels
	ZooKeeper bool              // the servers run ZooKeeper
	protected map[string]bool   // see zkFrames.rename
}

// Never is later than every instant.
const Never = 1<<63 - 1

// Span is a range of durations from which one is drawn, both ends included.
type Span struct{ Min, Max time.Duration }

// action is an event's effect. fire is called with the world locked.
type action interface{ Fire() }

// call is an action that is a function.
type call func()

func (f call) Fire() { f() }

func NewWorld(seed uint64, l slotTable, trace io.Writer, latency Span) *World {
	w := &World{epoch: time.Now(), Seed: seed, Slots: l, trace: trace, latency: latency, armed: Never,
		names: map[string]uint64{}, Addresses: map[string]*Host{}, others: map[string]*Actor{},
		protected: map[string]bool{}, Hash: seed, timerAt: Never, due: make(chan struct{}, 1)}
	w.timer = time.NewTimer(time.Hour)
	w.timer.Stop()
	go w.loop()
	return w
}

// loop runs due events until the world is closed.
func (w *World) loop() {
	for {
		select {
		case <-w.timer.C:
			w.Mu.Lock()
			w.timerAt = Never
			w.Mu.Unlock()
			w.pump()
		case _, open := <-w.due:
			if !open {
				return
			}
			w.pump()
		}
	}
}

// Now is the present instant, in nanoseconds since the epoch.
func (w *World) Now() int64 { return int64(time.Since(w.epoch)) }

// at schedules do at an instant, which must not have passed. rank orders the events of one instant; each
// independent source of events has its own.
func (w *World) at(instant int64, rank int64, do action) {
	if w.Closed {
		return
	}
	w.count++
	w.queue.push(event{at: instant, rank: rank, seq: w.count, do: do})
	if instant < w.armed {
		w.arm(instant)
	}
}

// arm has the loop run the event of an instant. Most events that goroutines cause are due at once, and the next later
// one is the same as before: the timer, which the runtime keeps in a heap, is left alone then.
func (w *World) arm(instant int64) {
	w.armed = instant
	now := w.Now()
	switch {
	case instant <= now:
		select {
		case w.due <- struct{}{}:
		default:
		}
	case instant != w.timerAt:
		w.timerAt = instant
		w.timer.Reset(time.Duration(instant - now))
	}
}

// pump runs every event that is due, in phases.
func (w *World) pump() {
	for more := true; more; {
		synctest.Wait()
		more = w.phase()
	}
}

// phase runs events until one has woken a goroutine; false: none is left that is due.
func (w *World) phase() bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.Closed {
		return false
	}
	now := w.Now()
	w.armed = now // events added meanwhile are seen below
	for w.woke = false; !w.woke && len(w.queue) > 0 && w.queue[0].at <= now; {
		w.queue.pop().do.Fire()
	}
	if w.Closed {
		return false
	}
	if w.woke || len(w.queue) > 0 && w.queue[0].at <= now {
		return true
	}
	w.armed = Never
	if len(w.queue) > 0 {
		w.arm(w.queue[0].at)
	}
	return false
}

// sleeper is the wait of one goroutine at a time in virtual time.
type sleeper struct {
	cond  sync.Cond
	since uint64 // the event count when it began
	at    int    // its index among world.sleepers; less than 0: nobody waits
}

// init makes s ready; it must not be copied afterwards.
func (s *sleeper) init(w *World) { s.cond.L, s.at = &w.Mu, -1 }

// wake wakes the goroutine that waits for s, if there is one.
func (w *World) wake(s *sleeper) {
	if s.at < 0 {
		return
	}
	w.woke = true
	s.cond.Broadcast()
}

// wait returns after wake, or when the world is closed, which drops the event that would have woken the caller.
func (w *World) wait(s *sleeper) {
	w.count++
	s.since, s.at = w.count, len(w.sleepers)
	w.sleepers = append(w.sleepers, s)
	s.cond.Wait()
	last := len(w.sleepers) - 1
	w.sleepers[s.at], w.sleepers[last].at = w.sleepers[last], s.at
	w.sleepers[last], w.sleepers = nil, w.sleepers[:last]
	s.at = -1
}

// Poll looks every millisecond, until an instant, whether something is done. The world is locked, except while the
// caller sleeps; whole milliseconds keep it on its slot.
func (w *World) Poll(end int64, done func() bool) {
	for !done() && w.Now() < end {
		w.Mu.Unlock()
		time.Sleep(time.Millisecond)
		w.Mu.Lock()
	}
}

// Close drops all future events and wakes all waiters, the longest waiting first.
func (w *World) Close() {
	w.Closed = true
	w.queue = nil
	w.timer.Stop()
	close(w.due)
	waiting := slices.SortedFunc(slices.Values(w.sleepers), func(a, b *sleeper) int {
		return cmp.Compare(a.since, b.since)
	})
	for _, s := range waiting {
		s.cond.Broadcast()
	}
}

// Stream is a random stream that belongs to the ids alone: the order of draws from different streams does not matter.
func (w *World) Stream(ids ...uint64) *rand.Rand {
	h := w.Seed
	for _, id := range ids {
		h = Mix(h, id)
	}
	return rand.New(rand.NewPCG(w.Seed, h))
}

// draw is a duration in s.
func (s Span) draw(from *rand.Rand) int64 {
	if s.Max <= s.Min {
		return int64(s.Min)
	}
	return int64(s.Min) + from.Int64N(int64(s.Max-s.Min)+1)
}

// Mix puts x into the hash h. It is a hash of one word at a time, because every
// byte of a run goes through it.
func Mix(h, x uint64) uint64 {
	h = (h ^ x) * 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	return h ^ h>>29
}

// NameHash is a number for a name that is the same in every run.
func NameHash(name string) uint64 {
	h := uint64(len(name))
	for i := range len(name) {
		h = Mix(h, uint64(name[i]))
	}
	return h
}

// note adds data delivered over a connection to the hash and the trace.
func (w *World) note(c *Conn, dir int, data []byte) {
	now := w.Now()
	h := Mix(Mix(w.Hash, uint64(now)), c.id<<1|uint64(dir))
	rest := data
	for ; len(rest) >= 8; rest = rest[8:] {
		h = Mix(h, binary.LittleEndian.Uint64(rest))
	}
	last := uint64(len(data))
	for _, b := range rest {
		last = last<<8 | uint64(b)
	}
	w.Hash = Mix(h, last)
	if w.trace != nil {
		from, to := c.From.name, c.to.Name
		if dir == Back {
			from, to = to, from
		}
		fmt.Fprintf(w.trace, "%d %s>%s %x %q\n", now, from, to, c.id, data)
	}
}

// event is an action at an instant.
type event struct {
	at   int64
	rank int64
	seq  uint64
	do   action
}

func (e event) before(o event) bool {
	switch {
	case e.at != o.at:
		return e.at < o.at
	case e.rank != o.rank:
		return e.rank < o.rank
	}
	a, _ := e.do.(*ordered)
	b, _ := o.do.(*ordered)
	if a != nil && b != nil {
		if c := a.compare(b); c != 0 {
			return c < 0
		}
	}
	return e.seq < o.seq
}

// queue is a heap. container/heap would put every event into an interface.
type queue []event

func (q *queue) push(e event) {
	h := append(*q, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	*q = h
}

func (q *queue) pop() event {
	h := *q
	top, last := h[0], h[len(h)-1]
	h[len(h)-1] = event{} // free its references
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(last) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return top
}
