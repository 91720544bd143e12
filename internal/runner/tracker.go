package runner

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/liveholds"
	"github.com/lockchaos/lockchaos/scenarios"
)

// tracker follows the history as it is written. It feeds the status, resolves targets and fires triggers.
type tracker struct {
	clients int
	keys    []string

	mu        sync.Mutex
	live      *liveholds.Holds
	asked     map[int]asked                          // by client, the request in flight; askedNow sets it
	acquiring map[string]int                         // by key, the acquires among them
	last      int                                    // client that was granted a lock last; -1: none
	doubt     time.Time                              // when an acquire last ended with an unknown outcome; zero: none did
	promised  time.Duration                          // the longest validity of a grant
	leftQueue time.Time                              // when a waiter last died or may have failed to leave a queue
	seen      map[string]map[string]history.KeyState // by master, its keys when it was sampled last
	status    Status
	armed     []*armedTrigger
}

// asked is a request in flight.
type asked struct {
	f, key, owner string
	at            time.Duration // of its invocation
	granted       bool          // by a server, as its samples show
}

// armedTrigger is a trigger that a step of the plan waits for.
type armedTrigger struct {
	when  string
	fired chan history.Event // buffers the one event
}

func newTracker(clients int, keys []string) *tracker {
	return &tracker{
		clients: clients, keys: keys, live: liveholds.New(clients), asked: map[int]asked{},
		acquiring: map[string]int{}, last: -1, seen: map[string]map[string]history.KeyState{},
		status: Status{Faults: map[int]string{}},
	}
}

// add takes the next event. The recorder calls it with its lock held, so it must not block.
func (t *tracker) add(e history.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Events++
	t.status.Time = e.Time
	if e.Process != history.Nemesis {
		t.addClient(e)
	} else if e.Value != nil && e.Value.Fault != nil { // not a final check
		t.addFault(e)
	}
	t.fire(e, triggers(e, len(t.live.Of(e.Key)) > 0, t.waitsFor(e))...)
}

// waitsFor reports whether another client than e's waits for its lock. t.mu is held.
func (t *tracker) waitsFor(e history.Event) bool {
	if t.acquiring[e.Key] == 0 || e.Process == history.Nemesis {
		return false
	}
	client := e.Process.Client(t.clients)
	for other, a := range t.asked {
		if other != client && a.f == history.Acquire && a.key == e.Key {
			return true
		}
	}
	return false
}

// fire fires the armed triggers of these names. t.mu is held.
func (t *tracker) fire(e history.Event, names ...string) {
	if len(names) == 0 {
		return
	}
	t.armed = slices.DeleteFunc(t.armed, func(a *armedTrigger) bool {
		if !slices.Contains(names, a.when) {
			return false
		}
		a.fired <- e
		return true
	})
}

// sampled takes the next sample of a node. It fires the triggers of events at servers that a client reports later, or
// never.
func (t *tracker) sampled(s history.Sample) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.seen[s.Node]
	if !s.Up || s.Role != "master" {
		delete(t.seen, s.Node)
		return
	}
	t.seen[s.Node] = s.Keys
	e := history.Event{Time: s.Time}
	for key, now := range s.Keys { // in any order: a trigger fires once
		was := before[key]
		if was.TTL > 0 && now.TTL > was.TTL && now.Owner != "" && now.Owner == was.Owner && now.Count == was.Count {
			t.fire(e, scenarios.Renewed)
		}
	}
	for client, a := range t.asked { // in any order: a trigger fires once
		if !isAcquire(a.f) || a.granted || a.at > s.Sent || !t.request(client).GrantedIn(s.Keys, before) {
			continue
		}
		a.granted = true
		t.asked[client] = a
		t.fire(e, scenarios.Granted)
	}
}

// askedNow sets the request that a client has in flight; the zero value: none. t.mu is held.
func (t *tracker) askedNow(client int, a asked) {
	if was := t.asked[client]; isAcquire(was.f) {
		t.acquiring[was.key]--
	}
	if isAcquire(a.f) {
		t.acquiring[a.key]++
	}
	if a.f == "" {
		delete(t.asked, client)
		return
	}
	t.asked[client] = a
}

// request is the known part of a client's acquire, which is in flight. t.mu is held.
func (t *tracker) request(client int) cluster.Acquire {
	a := t.asked[client]
	r := cluster.Acquire{
		Key: a.key, Owner: a.owner, Alone: len(t.live.Of(a.key)) == 0 && t.acquiring[a.key] == 1,
	}
	if h, ok := t.live.Find(a.key, a.owner); ok {
		r.Counted = h.Count()
	}
	return r
}

// Acquiring is the acquire of a client that is in flight.
func (t *tracker) Acquiring(client int) (cluster.Acquire, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !isAcquire(t.asked[client].f) {
		return cluster.Acquire{}, false
	}
	return t.request(client), true
}

// inFlight is the request of a client that is in flight: acquire, release, renew; "" if there is none.
func (t *tracker) inFlight(client int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.asked[client].f; !isAcquire(f) {
		return f
	}
	return history.Acquire
}

func (t *tracker) addClient(e history.Event) {
	t.live.Add(&e)
	client := e.Process.Client(t.clients)
	switch {
	case e.Type == history.Invoke:
		a := asked{f: e.F, key: e.Key, at: e.Time}
		if e.Value != nil {
			a.owner = e.Value.Owner
		}
		t.askedNow(client, a)
	case e.F == t.asked[client].f, e.F == history.Crash: // other events are notices
		t.askedNow(client, asked{})
	}
	if isAcquire(e.F) && e.Type == history.OK {
		t.last = client
		t.status.Grants++
		if e.Value != nil {
			t.promised = max(t.promised, e.Value.Valid)
		}
	}
	if e.Type == history.Info && e.Error != nil {
		t.status.Unknown++
		if isAcquire(e.F) {
			t.doubt = time.Now()
		}
	}
	failed := e.F == history.Acquire && e.Type == history.Fail && len(t.status.Faults) > 0
	if failed || e.F == history.Acquire && e.Type == history.Info || e.F == history.Crash {
		t.leftQueue = time.Now()
	}
	t.status.Overlaps = t.status.Overlaps || t.live.Conflict(e.Key)
}

func (t *tracker) addFault(e history.Event) {
	f := e.Value.Fault
	switch f.Phase {
	case history.Injected:
		t.status.Faults[f.ID] = e.F + " " + f.Target
	case history.Healed:
		delete(t.status.Faults, f.ID)
	}
}

// doubtUntil is the end of the last lease that an acquire of unknown outcome may have been granted; zero: there is
// none.
func (t *tracker) doubtUntil(lease time.Duration) time.Time { return t.after(&t.doubt, lease) }

// longestPromise is the longest validity of a grant; 0: the lock promises none.
func (t *tracker) longestPromise() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.promised
}

// queuedUntil is when a fair lock has certainly removed the waiters that died, or that failed to leave its queue; zero:
// there are none.
func (t *tracker) queuedUntil(lease time.Duration) time.Time {
	return t.after(&t.leftQueue, max(lease, waiterTimeout))
}

// after is the instant d after *at, which the tracker sets; zero if it has not.
func (t *tracker) after(at *time.Time, d time.Duration) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at.IsZero() {
		return *at
	}
	return at.Add(d)
}

// triggers are the triggers that e fires. held: its key is held; awaited: another client waits for it. A client waits
// from its request on, if the lock is held then, or else from the grant to another one: which of them comes first is
// chance where all request the lock at once.
func triggers(e history.Event, held, awaited bool) []string {
	switch {
	case isAcquire(e.F) && e.Type == history.OK && awaited:
		return []string{scenarios.Acquired, scenarios.Waiting}
	case isAcquire(e.F) && e.Type == history.OK:
		return []string{scenarios.Acquired}
	case isAcquire(e.F) && e.Type == history.Invoke && held:
		return []string{scenarios.Requested, scenarios.Waiting}
	case isAcquire(e.F) && e.Type == history.Invoke:
		return []string{scenarios.Requested}
	case e.F == history.Renewed, e.F == history.Renew && e.Type == history.OK:
		return []string{scenarios.Renewed}
	case e.F == history.Release && e.Type == history.Invoke:
		return []string{scenarios.Releasing}
	case e.F == history.Release && e.Type == history.OK:
		return []string{scenarios.Released}
	case e.F == history.Lost:
		return []string{scenarios.Lost}
	case e.F == history.NodePromoted:
		return []string{scenarios.Promoted}
	}
	return nil
}

func isAcquire(f string) bool { return f == history.Acquire || f == history.Try }

// arm waits for the next event that fires the trigger when.
func (t *tracker) arm(when string) *armedTrigger {
	a := &armedTrigger{when: when, fired: make(chan history.Event, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = append(t.armed, a)
	return a
}

func (t *tracker) disarm(a *armedTrigger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = slices.DeleteFunc(t.armed, func(b *armedTrigger) bool { return a == b })
}

// Holder is the client that was granted a lock last.
func (t *tracker) Holder() (client int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.last >= 0
}

// triggeredBy is the state of the clients for a step that a trigger started.
type triggeredBy struct {
	*tracker
	event history.Event
}

// Holder is the client whose event fired the trigger, as long as it holds that lock or requests its release. Of several
// locks, each with a holder, the step is about this one.
func (t triggeredBy) Holder() (client int, ok bool) {
	t.mu.Lock()
	client = t.event.Process.Client(t.clients)
	a := t.asked[client]
	holds := a.f == history.Release && a.key == t.event.Key ||
		slices.ContainsFunc(t.live.Of(t.event.Key), func(h liveholds.Hold) bool { return h.Client == client })
	t.mu.Unlock()
	if holds {
		return client, true
	}
	return t.tracker.Holder()
}

// Waiter is the lowest-numbered client that waits for a lock.
func (t *tracker) Waiter() (client int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lowest := -1
	for c, a := range t.asked { // in any order: the lowest is taken
		if isAcquire(a.f) && (lowest < 0 || c < lowest) {
			lowest = c
		}
	}
	return lowest, lowest >= 0
}

// Keys are the names of all locks of the run.
func (t *tracker) Keys() []string { return t.keys }

// snapshot is a copy of the status.
func (t *tracker) snapshot() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.status
	s.Faults = maps.Clone(t.status.Faults)
	s.Holders = map[string][]int{}
	for _, key := range t.live.Keys() {
		for _, h := range t.live.Of(key) {
			s.Holders[key] = append(s.Holders[key], h.Client)
		}
	}
	return s
}
