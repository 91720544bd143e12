package session

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// validity tracks when the holds of a session end, for a lock that reports no loss (promise reports-loss):
// its user has to watch the validity that it was promised.
type validity struct {
	mu    sync.Mutex
	holds map[heldBy]*heldUntil // nil: the lock reports losses
	over  map[heldBy]bool       // holds whose validity has ended

	promised, unpromised bool // whether there was a grant with a validity, and one with a lease and without a validity
}

// heldBy names a hold. An owner may have one in each mode, with a validity of its own.
type heldBy struct{ key, owner, mode string }

type heldUntil struct {
	depth int
	until time.Time
}

// WatchValidity makes the session record the loss of a hold when the validity ends that its lock promised, and not send
// a renewal after that, as a careful user does of a lock that reports no loss.
func (s *Session) WatchValidity() {
	s.valid.mu.Lock()
	defer s.valid.mu.Unlock()
	s.valid.holds, s.valid.over = map[heldBy]*heldUntil{}, map[heldBy]bool{}
}

// KnowsLosses reports whether the session watches the validity of its holds, and each hold so far that was requested
// with a lease was promised one.
func (s *Session) KnowsLosses() bool {
	s.valid.mu.Lock()
	defer s.valid.mu.Unlock()
	return s.valid.promised && !s.valid.unpromised
}

// watched notes the promise in the reply to r.
func (v *validity) watched(r client.Request, answer Answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.holds == nil {
		return
	}
	until := time.Now().Add(answer.Valid)
	for _, key := range keysOf(r) {
		by := heldBy{key, r.Owner, r.Mode}
		h := v.holds[by]
		switch {
		case r.Op == history.Release && h != nil:
			if h.depth--; h.depth == 0 {
				delete(v.holds, by)
			}
		case answer.Outcome != history.OK:
		case answer.Valid == 0:
			v.unpromised = v.unpromised || r.Lease > 0
		case r.Op == history.Renew && h != nil:
			h.until = until
		case r.Op != history.Acquire && r.Op != history.Try:
		case h == nil:
			v.promised = true
			v.holds[by] = &heldUntil{1, until}
		default:
			h.depth++
			h.until = slices.MaxFunc([]time.Time{h.until, until}, time.Time.Compare)
		}
	}
}

// renewed notes the promise in a notice, which is about all modes.
func (v *validity) renewed(key, owner string, valid time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for by, h := range v.holds {
		if by.key == key && by.owner == owner && valid != 0 {
			h.until = time.Now().Add(valid)
		}
	}
}

// ended removes the holds whose validity has ended, and returns them, the oldest first, and when the next one ends.
func (v *validity) ended() (lost []client.Reply, next time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for by, h := range v.holds {
		switch {
		case !h.until.After(time.Now()):
			lost = append(lost, client.Reply{Event: history.Lost, Key: by.key, Owner: by.owner, Mode: by.mode,
				Deadline: h.until})
			delete(v.holds, by)
			v.over[by] = true
		case next.IsZero() || h.until.Before(next):
			next = h.until
		}
	}
	slices.SortFunc(lost, func(a, b client.Reply) int {
		return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Owner, b.Owner),
			cmp.Compare(a.Mode, b.Mode))
	})
	return lost, next
}

// noteEnded records the holds whose validity has ended.
func (s *Session) noteEnded() (next time.Time) {
	lost, next := s.valid.ended()
	for _, l := range lost {
		age := max(time.Since(l.Deadline), 1) // 0: it is unknown
		s.noteLost(l.Owner)
		s.record.Note(s.Process(), l.Event, l.Key, &history.Value{Owner: l.Owner, Mode: l.Mode, Age: age})
	}
	return next
}

// noteLost notes that the loss of a hold of an owner was reported.
func (s *Session) noteLost(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone == nil {
		s.gone = make(map[string]bool)
	}
	s.gone[owner] = true
}

// Lost reports whether the loss of a hold of the owner of h was reported.
func (s *Session) Lost(h Hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone[h.Owner]
}

// left is how long a hold is valid, in whole milliseconds; 0: that is not watched. A renewal for less would shorten the
// lease at some locks, and if it gets no reply, nobody knows for how long the hold is valid.
func (v *validity) left(of Hold) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.holds[heldBy{of.Key, of.Owner, of.Mode}]
	if h == nil {
		return 0
	}
	return max(0, time.Until(h.until).Truncate(time.Millisecond)+time.Millisecond)
}

// isOver reports whether the validity of the hold has ended.
func (v *validity) isOver(h Hold) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.over[heldBy{h.Key, h.Owner, h.Mode}]
}

func keysOf(r client.Request) []string {
	if len(r.Keys) == 0 {
		return []string{r.Key}
	}
	return r.Keys
}

// AwaitEnds records the ends of holds that were left to their leases, until the last of them has ended or ctx has. No
// operation may be in flight.
func (s *Session) AwaitEnds(ctx context.Context) {
	for next := s.noteEnded(); !next.IsZero() && s.Alive(); next = s.noteEnded() {
		select {
		case <-time.After(max(0, time.Until(next)) + time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}
