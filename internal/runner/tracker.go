package runner

import (
	"slices"
	"sync"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// tracker follows the history as it is written: who holds, who waits, what has
// happened so far. It feeds the live display, aims faults and pulls triggers.
type tracker struct {
	clients int
	keys    []string

	mu      sync.Mutex
	live    *checker.LiveHolds
	waiting map[history.Process]string
	last    int // client that got the lock last; -1: none
	status  Status
	armed   []*armed
}

// trap is a trigger that somebody waits for.
type armed struct {
	when  string
	fired chan history.Event // 1 deep
}

func newTracker(clients int, keys []string) *tracker {
	return &tracker{
		clients: clients, keys: keys, live: checker.NewLiveHolds(clients), waiting: map[history.Process]string{}, last: -1,
		status: Status{Faults: map[int]string{}},
	}
}

// see takes the next event. It is called inside the recorder's critical
// section, so it is quick and never waits.
func (t *tracker) add(e history.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Events++
	t.status.Time = e.Time
	if e.Process == history.Nemesis {
		if e.Value != nil && e.Value.Fault != nil { // else it is the look at the end
			t.addFault(e)
		}
	} else {
		t.addClient(e)
	}
	when := trigger(e, len(t.live.Of(e.Key)) > 0)
	if when == "" {
		return
	}
	t.armed = slices.DeleteFunc(t.armed, func(p *armed) bool {
		if p.when != when {
			return false
		}
		p.fired <- e
		return true
	})
}

func (t *tracker) addClient(e history.Event) {
	t.live.Add(&e)
	if isAcquire(e.F) {
		switch e.Type {
		case history.Invoke:
			t.waiting[e.Process] = e.Key
		case history.OK:
			t.last = e.Process.Client(t.clients)
			t.status.Grants++
			fallthrough
		default:
			delete(t.waiting, e.Process)
		}
	}
	if e.Type == history.Info && e.Error != nil {
		t.status.Unknown++
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

// trigger is the word of the trigger that e pulls, or "".
func trigger(e history.Event, held bool) string {
	switch {
	case isAcquire(e.F) && e.Type == history.OK:
		return "acquired"
	case isAcquire(e.F) && e.Type == history.Invoke && held:
		return "waiting"
	case e.F == history.Renewed, e.F == history.Renew && e.Type == history.OK:
		return "renewed"
	case e.F == history.Release && e.Type == history.Invoke:
		return "releasing"
	case e.F == history.Release && e.Type == history.OK:
		return "released"
	case e.F == history.Lost:
		return "lost"
	case e.F == promoted:
		return "promoted"
	}
	return ""
}

// promoted is the note of a node that has become master.
const promoted = "promoted"

func isAcquire(f string) bool { return f == history.Acquire || f == history.Try }

// arm sets a trap for the next event that pulls the trigger when.
func (t *tracker) arm(when string) *armed {
	p := &armed{when: when, fired: make(chan history.Event, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = append(t.armed, p)
	return p
}

func (t *tracker) disarm(p *armed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = slices.DeleteFunc(t.armed, func(q *armed) bool { return p == q })
}

// Holder is the client that got the lock last, if it got one at all.
func (t *tracker) Holder() (client int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.last >= 0
}

// Waiter is the lowest-numbered client that waits for a lock.
func (t *tracker) Waiter() (client int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	best := -1
	for p := range t.waiting { // order does not matter: the least is taken
		if c := p.Client(t.clients); best < 0 || c < best {
			best = c
		}
	}
	return best, best >= 0
}

// Keys are the names of all locks of the run.
func (t *tracker) Keys() []string { return t.keys }

// snapshot is the status now, for showing.
func (t *tracker) snapshot() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.status
	s.Faults = map[int]string{}
	for id, f := range t.status.Faults { // order does not matter: a copy
		s.Faults[id] = f
	}
	s.Holders = map[string][]int{}
	for _, key := range t.live.Keys() {
		for _, h := range t.live.Of(key) {
			s.Holders[key] = append(s.Holders[key], h.Client)
		}
	}
	return s
}
