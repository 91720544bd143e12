package runner

import (
	"maps"
	"slices"
	"sync"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/scenarios"
)

// tracker follows the history as it is written. It feeds the status, resolves targets and fires triggers.
type tracker struct {
	clients int
	keys    []string

	mu      sync.Mutex
	live    *checker.LiveHolds
	waiting map[history.Process]string // key that each process waits for
	last    int                        // client that was granted a lock last; -1: none
	status  Status
	armed   []*armedTrigger
}

// armedTrigger is a trigger that a step of the plan waits for.
type armedTrigger struct {
	when  string
	fired chan history.Event // buffers the one event
}

func newTracker(clients int, keys []string) *tracker {
	return &tracker{
		clients: clients, keys: keys, live: checker.NewLiveHolds(clients), waiting: map[history.Process]string{}, last: -1,
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
	when := trigger(e, len(t.live.Of(e.Key)) > 0)
	if when == "" {
		return
	}
	t.armed = slices.DeleteFunc(t.armed, func(a *armedTrigger) bool {
		if a.when != when {
			return false
		}
		a.fired <- e
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

// trigger is the trigger that e fires, or "". held: its key is held.
func trigger(e history.Event, held bool) string {
	switch {
	case isAcquire(e.F) && e.Type == history.OK:
		return scenarios.Acquired
	case isAcquire(e.F) && e.Type == history.Invoke && held:
		return scenarios.Waiting
	case e.F == history.Renewed, e.F == history.Renew && e.Type == history.OK:
		return scenarios.Renewed
	case e.F == history.Release && e.Type == history.Invoke:
		return scenarios.Releasing
	case e.F == history.Release && e.Type == history.OK:
		return scenarios.Released
	case e.F == history.Lost:
		return scenarios.Lost
	case e.F == history.NodePromoted:
		return scenarios.Promoted
	}
	return ""
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

// Waiter is the lowest-numbered client that waits for a lock.
func (t *tracker) Waiter() (client int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lowest := -1
	for p := range t.waiting { // in any order: the lowest is taken
		if c := p.Client(t.clients); lowest < 0 || c < lowest {
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
