package reports

import (
	"fmt"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// ending is how a hold came to its end.
type ending string

const (
	released ending = "released"
	lost     ending = "told that it was lost"
	crashed  ending = "crashed"
	stillOn  ending = "still held at the end"
)

// promise is a stretch of time for which a client was told that the lock is its own.
type promise struct{ from, until time.Duration }

// hold is one stay in the lock as its client saw it. Checkers judge holds of
// their own; these are for drawing and telling.
type hold struct {
	client     int
	key, owner int32
	token      uint64
	write      bool
	permits    int32         // of a semaphore; 0: the lock is none
	asked      time.Duration // acquire invoked
	from       time.Duration // acquire returned
	to         time.Duration // release invoked, loss told, crash, or end of the history
	promises   []promise     // as they were made; empty if the lock promised nothing
	how        ending
	grant, end int32 // indices of the events that began and ended it; end is -1 if none did
}

// validUntil is the end of the last promise; 0 if there was none.
func (h *hold) validUntil() time.Duration {
	var until time.Duration
	for _, p := range h.promises {
		until = max(until, p.until)
	}
	return until
}

// what is held, for people: permits of a semaphore, or the lock, in the words given.
func (h *hold) what(lock string) string {
	switch h.permits {
	case 0:
		return lock
	case 1:
		return "1 permit"
	}
	return fmt.Sprintf("%d permits", h.permits)
}

// holdID tells holds apart across processes: a client goes on under a new
// process number after an unknown outcome, and its owner id stays.
type holdID struct {
	client     int
	key, owner int32
}

// findHolds pairs grants with what ended them.
func findHolds(h *history.History, clients int) []hold {
	f := holdFinder{clients: clients, end: h.End, limit: h.Limit,
		open: map[holdID]int{}, depth: map[int]int{}, byID: map[holdID][]int{}}
	for i := range h.Spans {
		f.span(&h.Spans[i])
	}
	for i := range h.Notices {
		f.notice(&h.Notices[i])
	}
	sort.SliceStable(f.holds, func(i, k int) bool { return f.holds[i].from < f.holds[k].from })
	return f.holds
}

type holdFinder struct {
	clients int
	end     time.Duration
	limit   func(key int32) int32 // permits of a key in all; 0: it is no semaphore
	holds   []hold
	open    map[holdID]int   // the hold that is open under this id
	depth   map[int]int      // nested acquisitions of an open hold
	byID    map[holdID][]int // all holds under this id, oldest first
}

func (f *holdFinder) span(s *history.Span) {
	id := holdID{s.Process.Client(f.clients), s.Key, s.Owner}
	at, open := f.open[id]
	switch s.Op {
	case history.OpAcquire, history.OpTry:
		switch {
		case s.Outcome != history.OK:
		case open:
			f.depth[at]++
		default:
			f.begin(id, s)
		}
	case history.OpRenew:
		if open && s.Outcome == history.OK && s.Valid > 0 {
			f.holds[at].promises = append(f.holds[at].promises, promise{s.Return, s.Valid})
		}
	case history.OpRelease:
		if !open {
			return
		}
		if f.depth[at]--; f.depth[at] == 0 {
			hd := &f.holds[at]
			hd.to, hd.how, hd.end = s.Call, released, s.Invoked
			delete(f.open, id)
		}
	}
}

func (f *holdFinder) begin(id holdID, s *history.Span) {
	hd := hold{client: id.client, key: s.Key, owner: s.Owner, token: s.Token, write: s.Write,
		asked: s.Call, from: s.Return, to: f.end, how: stillOn, grant: s.Ended, end: -1}
	if f.limit(s.Key) != 0 {
		hd.permits = s.Permits
	}
	if s.Valid > 0 {
		hd.promises = []promise{{s.Return, s.Valid}}
	}
	at := len(f.holds)
	f.holds = append(f.holds, hd)
	f.open[id], f.depth[at] = at, 1
	f.byID[id] = append(f.byID[id], at)
}

// notice shortens or prolongs the hold that was on at its time.
func (f *holdFinder) notice(n *history.Notice) {
	client := n.Process.Client(f.clients)
	if n.F == history.Crash {
		for id, all := range f.byID {
			if id.client == client {
				f.cut(all, n, crashed)
			}
		}
		return
	}
	all := f.byID[holdID{client, n.Key, n.Owner}]
	switch n.F {
	case history.Lost:
		f.cut(all, n, lost)
	case history.Renewed:
		if at := f.during(all, n.Time); at >= 0 && n.Valid > 0 {
			f.holds[at].promises = append(f.holds[at].promises, promise{n.Time, n.Valid})
		}
	}
}

func (f *holdFinder) cut(all []int, n *history.Notice, how ending) {
	if at := f.during(all, n.Time); at >= 0 {
		hd := &f.holds[at]
		hd.to, hd.how, hd.end = n.Time, how, n.Index
	}
}

// during is the hold of all that was on at t; -1 if none was.
func (f *holdFinder) during(all []int, t time.Duration) int {
	i := sort.Search(len(all), func(i int) bool { return f.holds[all[i]].from > t }) - 1
	if i < 0 || f.holds[all[i]].to < t {
		return -1
	}
	return all[i]
}

// faultLife is one injected fault from its injection to its end.
type faultLife struct {
	id     int
	name   string
	target string
	inject time.Duration
	bites  []history.Fault // where its effect was observed; empty: it tested nothing
	heal   time.Duration   // history.Infinity if it was not healed
	detail string
	event  int32 // index of the injection
}

// end is when the fault's bar ends in a drawing that ends at limit.
func (f *faultLife) end(limit time.Duration) time.Duration { return min(f.heal, limit) }

// hit is when the fault had its effect: the first bite, else the injection.
func (f *faultLife) hit() time.Duration {
	if len(f.bites) > 0 {
		return f.bites[0].Time
	}
	return f.inject
}

// findFaults joins the phases of each fault, and collects those that never came
// and the notes that belong to none.
func findFaults(h *history.History) (lives []faultLife, missed, notes []history.Fault) {
	byID := map[int]int{}
	for _, e := range h.Faults {
		at, ok := byID[e.ID]
		switch {
		case e.Phase == history.Missed:
			missed = append(missed, e)
			continue
		case e.Phase == history.Noted || e.ID == 0:
			notes = append(notes, e)
			continue
		}
		if !ok {
			at = len(lives)
			byID[e.ID] = at
			lives = append(lives, faultLife{id: e.ID, name: e.Name, target: e.Target, inject: e.Time,
				heal: history.Infinity, detail: e.Detail, event: e.Index})
		}
		life := &lives[at]
		switch e.Phase {
		case history.TookEffect:
			life.bites = append(life.bites, e)
		case history.Healed:
			life.heal = e.Time
		}
		if life.target == "" {
			life.target = e.Target
		}
	}
	return lives, missed, notes
}
