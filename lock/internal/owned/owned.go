// Package owned records the holds of owners on a quorum that this client was granted, and the withdrawn claims that
// masters may still have.
package owned

import (
	"slices"
	"sync"
	"time"
)

// Lock is a lock of one owner.
type Lock struct{ Key, Owner string }

// Holds are the holds that this client was granted and that have not ended. Their number is the hold count of a
// quorum. The counts of the masters are unreliable, because a master may have missed a hold or the undoing of a
// claim, so every master of a majority may be wrong. Holds that another client was granted for the same owner are not
// included. The zero value is ready, and safe for concurrent use.
type Holds struct {
	mu    sync.Mutex
	count map[Lock]int
}

// Add adds n holds, or removes them if n is negative.
func (h *Holds) Add(l Lock, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == nil {
		h.count = make(map[Lock]int)
	}
	if h.count[l] += n; h.count[l] <= 0 {
		delete(h.count, l)
	}
}

// Count is how many holds of a lock its owner has.
func (h *Holds) Count(l Lock) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count[l]
}

// MaxWithdrawn is how many withdrawn claims are kept.
const MaxWithdrawn = 1024

// Withdrawn are the claims that this client withdraws, each until all masters have confirmed the first request, or for
// a lease; only the last MaxWithdrawn are kept. A master that still has a claim takes another claim of its owner for a
// re-entry. The zero value is ready, and safe for concurrent use.
type Withdrawn struct {
	mu   sync.Mutex
	list []*Claim // oldest first
}

// Claim is a claim that is withdrawn.
type Claim struct {
	lock    Lock
	until   time.Time
	masters int // that have not confirmed it
}

// Add adds a claim that is withdrawn from so many masters from now on.
func (w *Withdrawn) Add(l Lock, lease time.Duration, masters int) *Claim {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for len(w.list) > 0 && (len(w.list) >= MaxWithdrawn || now.After(w.list[0].until)) {
		w.list = w.list[1:]
	}
	c := &Claim{l, now.Add(lease), masters}
	w.list = append(w.list, c)
	return c
}

// Confirm is called for each master that has confirmed that it does not have c.
func (w *Withdrawn) Confirm(c *Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.masters--; c.masters == 0 {
		w.list = slices.DeleteFunc(w.list, func(o *Claim) bool { return o == c })
	}
}

// Has reports whether a master may still have a claim for l.
func (w *Withdrawn) Has(l Lock) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(w.list, func(c *Claim) bool { return c.lock == l && now.Before(c.until) })
}
