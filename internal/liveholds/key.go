package liveholds

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// keyHolds are the holds of one key, and the requests for it.
type keyHolds struct {
	holds     []Hold                     // in the order of their grants
	owners    map[history.Process]string // for whom a process last acquired the key
	semaphore bool
	limit     int  // initial permits of the key; 0: not known
	resized   bool // a change of the number of permits was requested
	requests  int  // in flight
	forces    forces
	lost      map[ownerMode]bool // holds that were reported lost, and not released since; nil: none
}

// ownerMode is an owner that reads or writes.
type ownerMode struct {
	owner  string
	reader bool
}

// owner is the owner that an event names, or the one for whom its process last acquired the key, or the process
// itself.
func (k *keyHolds) owner(e *history.Event) string {
	acquires := isAcquiring(e.F)
	if e.Value != nil && e.Value.Owner != "" {
		if acquires {
			k.owners[e.Process] = e.Value.Owner
		}
		return e.Value.Owner
	}
	if owner, known := k.owners[e.Process]; known && !acquires {
		return owner
	}
	return fmt.Sprint("process ", e.Process)
}

// complete applies the reply to a request.
func (k *keyHolds) complete(e *history.Event, r *request, client int) {
	if e.Value != nil && e.Value.Owner != "" {
		r.owner = k.owner(e)
	}
	ok, missing := e.Type == history.OK, e.Type == history.Fail && !e.Held
	switch {
	case ok && isAcquiring(e.F):
		k.grant(e, r, client)
	case ok && e.F == history.Renew && (r.lease > 0 || e.Value != nil && e.Value.Valid != 0):
		k.renew(r.owner, e.Time, r.promised(e))
	case e.F == history.ForceRelease:
		k.forced(r, e)
	case missing && e.F == history.Renew:
		k.end(func(h *Hold) bool { return h.Owner == r.owner })
	case missing && e.F == history.Release && (r.released || k.semaphore):
		k.end(func(h *Hold) bool { // of a writer perhaps also its read
			return h.Owner == r.owner && (k.semaphore || h.Reader == r.releasedReader || h.Reader && !r.reader)
		})
	}
}

// forced ends the holds that a forced release has ended: all, or the holds of one owner. Holds of others stay if the
// hold before it proves that they were granted after it.
func (k *keyHolds) forced(r *request, e *history.Event) {
	before := slices.IndexFunc(k.holds, func(h Hold) bool {
		return !r.some && !h.Reader && !k.semaphore && h.since <= r.time && h.Valid >= e.Time && e.Type == history.OK
	})
	k.forces.end(r, e, before >= 0)
	if e.Type == history.Fail {
		return
	}
	if r.some {
		k.end(func(h *Hold) bool { return h.Owner == r.owner })
		return
	}
	owner := ""
	if before >= 0 {
		owner = k.holds[before].Owner
	}
	k.end(func(h *Hold) bool { return before < 0 || h.since <= r.time || h.Owner == owner })
}

// grant begins a hold or enters one again.
func (k *keyHolds) grant(e *history.Event, r *request, client int) {
	valid := r.promised(e)
	if at := k.find(r.owner, r.reader); at >= 0 && !k.semaphore && k.holds[at].Reader == r.reader {
		k.holds[at].depth++
		k.holds[at].promise(e.Time, valid)
		return
	}
	h := Hold{Owner: r.owner, Client: client, Reader: r.reader, Granted: e.Index, Valid: valid, depth: 1,
		asked: r.time, since: e.Time}
	if k.semaphore {
		if e.Value != nil && e.Value.Permits > 0 { // a try that took the free permits
			r.permits = e.Value.Permits
		}
		h.Permits, h.depth = r.permits, r.permits
	}
	k.holds = append(k.holds, h)
}

// find is the index of the latest hold of an owner, in the given mode or else in the other; -1 if it has none.
func (k *keyHolds) find(owner string, reader bool) int {
	other := -1
	for i := range slices.Backward(k.holds) {
		switch h := &k.holds[i]; {
		case h.Owner != owner:
		case h.Reader == reader:
			return i
		case other < 0:
			other = i
		}
	}
	return other
}

// release leaves one level or, of a semaphore, returns permits, the latest first.
func (k *keyHolds) release(r *request) {
	left := 1
	if k.semaphore {
		left = r.permits
	}
	for left > 0 {
		at := k.find(r.owner, r.reader)
		if at < 0 || k.holds[at].Reader != r.reader && k.lost[ownerMode{r.owner, r.reader}] {
			delete(k.lost, ownerMode{r.owner, r.reader})
			return
		}
		h := &k.holds[at]
		r.released, r.releasedReader = true, h.Reader
		some := min(left, h.depth)
		left -= some
		if h.depth -= some; k.semaphore {
			h.Permits = h.depth
		}
		if h.depth == 0 {
			k.holds = slices.Delete(k.holds, at, at+1)
		}
	}
}

// end ends holds that were not released.
func (k *keyHolds) end(is func(*Hold) bool) {
	k.holds = slices.DeleteFunc(k.holds, func(h Hold) bool { return is(&h) })
}

// renew extends the promises to an owner; of a semaphore the one of its latest hold.
func (k *keyHolds) renew(owner string, t, valid time.Duration) {
	for i := range slices.Backward(k.holds) {
		if h := &k.holds[i]; h.Owner == owner {
			if h.promise(t, valid); k.semaphore {
				return
			}
		}
	}
}

// promise replaces the promise in force at t; a promise that ends before t has no effect after it.
func (h *Hold) promise(t, valid time.Duration) {
	if t <= h.Valid || valid > t {
		h.Valid = max(t, valid)
	}
}

// notice applies a reported loss or a renewal by the watchdog. acquiring counts its owner's acquires without a reply.
func (k *keyHolds) notice(e *history.Event, acquiring func() int) {
	owner := k.owner(e)
	if e.F == history.Lost && e.Value != nil && e.Value.Count > 0 {
		k.loseLevel(owner, e.Value.Mode, e.Value.Count, acquiring)
		return
	}
	if e.F == history.Lost {
		k.loseAll(owner, e)
	} else if e.Value != nil && e.Value.Valid != 0 {
		k.renew(owner, e.Time, max(1, later(e.Time, e.Value.Valid)))
	}
}

// loseAll ends all holds of an owner that it requested before the notice of their loss was sent.
func (k *keyHolds) loseAll(owner string, e *history.Event) {
	sent, ended, mode := e.Time, e.Time, ""
	if e.Value != nil {
		sent, mode = e.Time-max(0, min(e.Value.Age, e.Time)), e.Value.Mode
		ended = sent
	}
	other := func(h *Hold) bool { return mode != "" && h.Reader != (mode == "read") }
	for i := range k.holds {
		h := &k.holds[i]
		if mode != "" && h.Owner == owner && !other(h) {
			ended = min(ended, h.Valid)
		}
	}
	k.end(func(h *Hold) bool {
		return h.Owner == owner && h.asked <= sent && !(other(h) && h.since > ended)
	})
}

// loseLevel ends one of several levels of an owner, if it is certain which hold it belongs to.
func (k *keyHolds) loseLevel(owner, mode string, left int, acquiring func() int) {
	only, levels := -1, 0
	for i := range k.holds {
		if k.holds[i].Owner != owner {
			continue
		}
		if levels += k.holds[i].depth; mode != "" && k.holds[i].Reader != (mode == "read") {
			continue
		}
		if only >= 0 {
			return
		}
		only = i
	}
	switch {
	case only < 0 || k.semaphore || levels <= left && levels+acquiring() <= left:
	case k.holds[only].depth == 1:
		if k.lost == nil {
			k.lost = make(map[ownerMode]bool)
		}
		k.lost[ownerMode{owner, k.holds[only].Reader}] = true
		k.holds = slices.Delete(k.holds, only, only+1)
	default:
		k.holds[only].depth--
	}
}
