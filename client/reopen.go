package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// Reopen closes the client of package lock and makes another one on the same connections. Each hold must have ended
// with it, and its context and its channel too; its loss is reported.
func (l *library) Reopen(ctx context.Context) error {
	if err := l.lock.Close(ctx); err != nil {
		return err
	}
	var wrong error
	for _, e := range l.holds.endAll() {
		if e.hold.Err() == nil || e.hold.Context().Err() == nil || !isDone(e.hold) {
			wrong = errors.Join(wrong, contradiction("the client was closed, and a hold of %q lasts", e.id.key))
		}
		what := Hold{Key: e.id.key, Owner: e.id.owner, Mode: e.id.mode, Keys: keysIn(e.id)}
		l.report(what, e.hold.Deadline())
	}
	l.events.forgetOutage()
	next, err := l.reopen()
	if err == nil {
		l.lock = next
	}
	return errors.Join(wrong, err)
}

func isDone(h held) bool {
	select {
	case <-h.Done():
		return true
	default:
		return false
	}
}

// endAll ends all holds, and returns them in the order of their keys and owners.
func (s *holds) endAll() (all []endedHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, list := range s.of { // order does not matter: they are sorted
		for _, h := range list {
			all = append(all, endedHold{id, h})
		}
	}
	clear(s.of)
	slices.SortStableFunc(all, func(a, b endedHold) int {
		return cmp.Or(cmp.Compare(a.id.key, b.id.key), cmp.Compare(a.id.owner, b.id.owner),
			cmp.Compare(a.id.mode, b.id.mode))
	})
	return all
}
