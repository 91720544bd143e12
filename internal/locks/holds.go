package locks

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

// keysIn are the keys of a hold of several; nil: it has one.
func keysIn(id native.HoldID) []string {
	if keys := strings.Split(id.Key, "+"); len(keys) > 1 {
		return keys
	}
	return nil
}

// holds are the holds of one client, the innermost one of each owner last. The latest that have ended are remembered,
// so that they can be renewed and released again: the lock has to refuse that.
type holds struct {
	mu    sync.Mutex
	of    map[native.HoldID][]held
	ended []endedHold
	inner map[held]held      // the last hold that was acquired under the context of another
	known map[held]time.Time // until when each was valid when it was granted, or last reported as renewed
}

type endedHold struct {
	id   native.HoldID
	hold held
}

func newHolds() *holds {
	return &holds{of: map[native.HoldID][]held{}, inner: map[held]held{}, known: map[held]time.Time{}}
}

func (s *holds) add(id native.HoldID, h held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[id] = append(s.of[id], h)
	s.known[h] = h.Deadline()
}

// prolonged are the renewals of holds that are valid for longer than when it was last called, or they were granted.
func (s *holds) prolonged() (renewals []client.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.SortedFunc(maps.Keys(s.of), func(a, b native.HoldID) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Mode, b.Mode))
	})
	for _, id := range ids {
		for _, h := range s.of[id] {
			until := h.Deadline()
			if h.Err() != nil || !until.After(s.known[h]) {
				continue
			}
			s.known[h] = until
			for _, key := range strings.Split(id.Key, "+") {
				renewals = append(renewals, client.Reply{Event: history.Renewed, Key: key, Owner: id.Owner, Deadline: until})
			}
		}
	}
	return renewals
}

// innermost is the hold of a request, or else the last such hold that has ended; nil if there was none. A request
// without a mode is about the hold for writing first.
func (s *holds) innermost(ref client.Hold) (held, native.HoldID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := native.IDOf(ref)
	ids := []native.HoldID{id}
	if id.Mode == "" {
		ids = append(ids, native.HoldID{Key: id.Key, Owner: id.Owner, Mode: "write"},
			native.HoldID{Key: id.Key, Owner: id.Owner, Mode: "read"})
	}
	for _, id := range ids {
		for _, h := range slices.Backward(s.of[id]) {
			if p, ok := h.(interface{ IDs() []string }); !ok || ref.Permits == 0 || permitsOf(p) == ref.Permits {
				return h, id
			}
		}
	}
	for _, e := range slices.Backward(s.ended) {
		if slices.Contains(ids, e.id) {
			return e.hold, e.id
		}
	}
	return nil, id
}

// nest notes that inner was acquired under the context of outer.
func (s *holds) nest(outer, inner held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inner[outer] = inner
}

// deepest is the last hold in force that was acquired under the context of h, or of such a hold; h if there is none.
func (s *holds) deepest(h held) held {
	s.mu.Lock()
	defer s.mu.Unlock()
	for in := s.inner[h]; in != nil && in.Err() == nil; in = s.inner[h] {
		h = in
	}
	return h
}

// modeOf is the mode of a hold; "" if it has none, or was not added yet.
func (s *holds) modeOf(h *lock.Hold) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, list := range s.of { // order does not matter: a hold is in one list
		if slices.ContainsFunc(list, func(x held) bool { one, ok := holdOf(x); return ok && one == h }) {
			return id.Mode
		}
	}
	return ""
}

// before is a hold of the last key before key that has one in force; nil: there is none. If there are several owners,
// the last one's.
func (s *holds) before(key string) (found held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last native.HoldID
	for id, list := range s.of { // order does not matter: the last one is chosen
		later := id.Key > last.Key || id.Key == last.Key && cmp.Compare(id.Owner+id.Mode, last.Owner+last.Mode) > 0
		if h := list[len(list)-1]; id.Key < key && later && h.Err() == nil {
			found, last = h, id
		}
	}
	return found
}

// permitsOf is how many permits a hold has.
func permitsOf(h any) int {
	if p, ok := h.(interface{ Count() int }); ok {
		return p.Count()
	}
	return 0
}

// end moves a hold to the ended ones.
func (s *holds) end(id native.HoldID, h held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.of[id], h)
	if i < 0 {
		return // it had ended before
	}
	delete(s.inner, h)
	delete(s.known, h)
	if s.of[id] = slices.Delete(s.of[id], i, i+1); len(s.of[id]) == 0 {
		delete(s.of, id)
	}
	if s.ended = append(s.ended, endedHold{id, h}); len(s.ended) > native.MaxEnded {
		s.ended = slices.Delete(s.ended, 0, 1)
	}
}

// live is how many holds of an owner at a key have not ended and are still valid.
func (s *holds) live(key, owner string) (n int) {
	s.eachLive(key, func(other string, _ time.Time) {
		if other == owner {
			n++
		}
	})
	return n
}

// count is how many holds of an owner at a key were not released.
func (s *holds) count(key, owner string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of[native.HoldID{Key: key, Owner: owner}])
}

// levels is how many holds of an owner at a key were not released, in all modes, and of several keys too. It is not
// known if one of its holds there was lost.
func (s *holds) levels(key, owner string) (n int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := func(id native.HoldID) bool {
		return id.Owner == owner && slices.Contains(strings.Split(id.Key, "+"), key)
	}
	for id, list := range s.of { // order does not matter: they are counted
		if at(id) {
			n += len(list)
		}
	}
	lost := func(e endedHold) bool { return at(e.id) && !errors.Is(e.hold.Err(), lock.ErrReleased) }
	return n, !slices.ContainsFunc(s.ended, lost)
}

// until is when the last valid hold of an owner at a key ends; zero if there is none, or if it has no end.
func (s *holds) until(key, owner string) (last time.Time) {
	s.eachLive(key, func(other string, until time.Time) {
		if other == owner && until.After(last) {
			last = until
		}
	})
	return last
}

// liveOwners are the owners of holds of a key that have not ended and are still valid.
func (s *holds) liveOwners(key string) (owners []string) {
	s.eachLive(key, func(owner string, _ time.Time) { owners = append(owners, owner) })
	return owners
}

// eachLive calls f with the owner and the deadline (zero: none) of each hold of a key, alone or with others, that has
// not ended and is still valid, in any order. It holds the mutex.
func (s *holds) eachLive(key string, f func(owner string, until time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for id, list := range s.of { // order does not matter to f
		if id.Key != key && !slices.Contains(strings.Split(id.Key, "+"), key) {
			continue
		}
		for _, h := range list {
			if until := h.Deadline(); h.Err() == nil && (until.IsZero() || until.After(now)) {
				f(id.Owner, until)
			}
		}
	}
}
