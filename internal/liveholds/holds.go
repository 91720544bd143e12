// Package liveholds knows who holds which key while a run is in progress. Triggers of faults and explored states
// need that; the checkers find the holds of a whole history more exactly (checker.FindHolds), and a
// test there compares the two.
//
// Read [Holds] first.
package liveholds

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Hold is one owner's possession of a lock that has not ended, see checker.Hold.
type Hold struct {
	Owner   string
	Client  int           // whose process acquired it
	Reader  bool          // shared with other readers; false: exclusive
	Permits int           // of a semaphore: how many the owner still has; else 0
	Granted int64         // index of the event that completed the acquire
	Valid   time.Duration // end of the last promise; history.Infinity if it has none

	depth int           // acquires that were not released; of a semaphore permits
	asked time.Duration // when it was requested
	since time.Duration // when it was granted
}

// Count is how often the owner has acquired the lock and not yet released it.
func (h Hold) Count() int { return h.depth }

// Holds finds the current holds from the events so far: the holds of checker.FindHolds, with two differences. A release
// of an inner level that fails because the hold does not exist ends the hold when the reply comes, not when it was
// invoked. And the unreleased levels or permits of a hold that is over (because a release failed, or one of several
// clients of that owner crashed) are forgotten, so that the owner's next release may count for another of its holds.
//
// It belongs to one goroutine.
type Holds struct {
	clients  int
	keys     map[string]*keyHolds           // that are held or requested
	requests map[history.Process]*[]request // in flight, the latest last
}

// request is the invocation of an operation.
type request struct {
	f, key, owner string
	reader        bool
	permits       int
	some          bool // a forced release of some permits
	time          time.Duration
	lease         time.Duration

	released, releasedReader bool // whether a release found a hold, and its mode
}

// New begins to follow a run of that many clients; 0 if it is not known.
func New(clients int) *Holds {
	return &Holds{clients: clients, keys: make(map[string]*keyHolds), requests: make(map[history.Process]*[]request)}
}

// Of returns the holds of a key in the order of their grants. The slice is valid until the next Add.
func (l *Holds) Of(key string) []Hold {
	if k := l.keys[key]; k != nil {
		return k.holds
	}
	return nil
}

// Find returns the latest hold of an owner at a key, and whether it has one.
func (l *Holds) Find(key, owner string) (Hold, bool) {
	for _, h := range slices.Backward(l.Of(key)) {
		if h.Owner == owner {
			return h, true
		}
	}
	return Hold{}, false
}

// Keys returns the keys that are held, sorted.
func (l *Holds) Keys() []string {
	var held []string
	for name, k := range l.keys { // order does not matter: sorted below
		if len(k.holds) > 0 {
			held = append(held, name)
		}
	}
	slices.Sort(held)
	return held
}

// Conflict reports whether more owners hold a key than its lock allows: any owner beside a writer or, of a semaphore,
// more permits than exist, unless a change of their number was requested. A hold that a forced release may have ended,
// because it is in flight, was when the hold was requested, or has an unknown outcome, does not count.
func (l *Holds) Conflict(key string) bool {
	k := l.keys[key]
	if k == nil {
		return false
	}
	permits, writer, owners := 0, false, false
	var first *Hold
	for i := range k.holds {
		h := &k.holds[i]
		if k.forces.mayEnd(h) {
			continue
		}
		if first == nil {
			first = h
		}
		permits += h.Permits
		writer = writer || !h.Reader
		owners = owners || h.Owner != first.Owner
	}
	if k.semaphore {
		return k.limit > 0 && !k.resized && permits > k.limit
	}
	return writer && owners
}

// Add applies the next event.
func (l *Holds) Add(e *history.Event) {
	switch {
	case e.Process == history.Nemesis, e.F == history.Work, e.F == history.Touch:
		return
	case e.F == history.Crash:
		client := e.Process.Client(l.clients)
		for _, k := range l.keys { // order does not matter: each is treated alike
			k.end(func(h *Hold) bool { return h.Client == client })
		}
		return
	case e.Type == history.Invoke:
		l.invoke(e)
		return
	case e.F == history.Lost, e.F == history.Renewed:
		if k := l.keys[e.Key]; k != nil {
			k.notice(e, func() int { return l.acquiring(k, e) })
		}
		return
	}
	r, known := l.requestOf(e)
	if !known {
		return
	}
	k := l.keys[r.key]
	k.complete(e, &r, e.Process.Client(l.clients))
	if k.requests--; k.requests == 0 && len(k.holds) == 0 && len(k.forces.pending) == 0 && !k.resized {
		delete(l.keys, r.key)
	}
}

// acquiring counts the acquires of the notice's owner and key that have no reply yet.
func (l *Holds) acquiring(k *keyHolds, notice *history.Event) (n int) {
	owner := k.owner(notice)
	for _, list := range l.requests { // in any order: they are counted
		for i := range *list {
			if r := &(*list)[i]; isAcquiring(r.f) && r.key == notice.Key && r.owner == owner {
				n++
			}
		}
	}
	return n
}

func isAcquiring(f string) bool { return f == history.Acquire || f == history.Try }

func (l *Holds) invoke(e *history.Event) {
	k := l.keys[e.Key]
	if k == nil {
		k = &keyHolds{owners: make(map[history.Process]string)}
		l.keys[e.Key] = k
	}
	r := request{f: e.F, key: e.Key, owner: k.owner(e), permits: 1, time: e.Time}
	if v := e.Value; v != nil {
		r.lease, r.reader, r.permits = v.Lease, v.Mode == "read", max(1, v.Permits)
		r.some = e.F == history.ForceRelease && v.Permits > 0
		k.semaphore = k.semaphore || v.Limit > 0 || v.Permits > 0
		k.limit = max(k.limit, v.Limit)
	}
	switch e.F {
	case history.Release:
		k.release(&r)
	case history.ForceRelease:
		k.forces.begin(&r)
	case history.Resize, history.AddPermits, history.DropPermits:
		k.resized = true
	}
	list := l.requests[e.Process]
	if list == nil {
		list = new([]request)
		l.requests[e.Process] = list
	}
	*list = append(*list, r)
	k.requests++
}

// requestOf removes the request that an event completes: the latest of the same process, operation and key.
func (l *Holds) requestOf(e *history.Event) (r request, known bool) {
	list := l.requests[e.Process]
	if list == nil {
		return request{}, false
	}
	n := len(*list) - 1
	for ; n >= 0; n-- {
		if r = (*list)[n]; r.f == e.F && (e.Key == "" || e.Key == r.key) {
			break
		}
	}
	if n < 0 {
		return request{}, false
	}
	if *list = slices.Delete(*list, n, n+1); len(*list) == 0 && e.Type == history.Info {
		delete(l.requests, e.Process) // the process is retired
	}
	return r, true
}

// promised is the end of the promise in a reply: the validity that it states or, without one, the end of the requested
// lease, counted from the invocation.
func (r *request) promised(e *history.Event) time.Duration {
	switch v := e.Value; {
	case v != nil && v.Valid != 0:
		return max(1, later(e.Time, v.Valid))
	case r.lease > 0:
		return later(r.time, r.lease)
	}
	return history.Infinity
}

// later is t+d, or history.Infinity if that is too large.
func later(t, d time.Duration) time.Duration {
	if d > 0 && t > history.Infinity-d {
		return history.Infinity
	}
	return t + d
}
