package queues_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/queues"
)

// TestTurn: whose turn it is among requests of all kinds, and for whom the others wait.
func TestTurn(t *testing.T) {
	readers := []string{"a-read", "b-read", "c-lock", "d-read", "e-lock"}
	permits := []string{"a-2of3", "b-1of3", "c-1of3", "d-1of3"}
	for _, c := range []struct {
		kind  queues.Kind
		own   string
		names []string
		want  queues.Turn
	}{
		{queues.Exclusive(), "a-lock", []string{"a-lock", "b-lock"}, queues.Turn{Found: true, Now: true}},
		{queues.Exclusive(), "c-lock", readers, queues.Turn{Found: true, After: "b-read"}},
		{queues.Exclusive(), "x-lock", readers, queues.Turn{}},
		{queues.Shared(), "b-read", readers, queues.Turn{Found: true, Now: true}},
		{queues.Shared(), "d-read", readers, queues.Turn{Found: true, After: "c-lock"}},
		{queues.Shared(), "b-read", []string{"a-1of3", "b-read"}, queues.Turn{Found: true, After: "a-1of3"}},
		{queues.Shared(), "x-read", readers, queues.Turn{}},
		{queues.Permits(2, 3), "a-2of3", permits, queues.Turn{Found: true, Now: true, Any: true, Announce: true}},
		{queues.Permits(2, 3), "a-2of3", permits[:1], queues.Turn{Found: true, Now: true, Any: true}},
		{
			queues.Permits(1, 3), "b-1of3", permits,
			queues.Turn{Found: true, Now: true, Any: true, After: "a-2of3", Announce: true},
		},
		{queues.Permits(1, 3), "c-1of3", permits, queues.Turn{Found: true, Any: true, After: "b-1of3"}},
		{queues.Permits(1, 3), "d-1of3", permits, queues.Turn{Found: true, After: "c-1of3"}},
		{queues.Permits(1, 3), "b-1of3", []string{"a-lock", "b-1of3"}, queues.Turn{Found: true, Any: true, After: "a-lock"}},
		{queues.Permits(1, 3), "x-1of3", permits, queues.Turn{}},
	} {
		if got := c.kind.Turn(c.own, c.names); got != c.want {
			t.Errorf("%s among %q: %+v, want %+v", c.own, c.names, got, c.want)
		}
	}
	if word := queues.Permits(2, 5).Word; word != "2of5" {
		t.Errorf("word %q, want 2of5", word)
	}
	for n, fits := range map[int]bool{-1: false, 0: false, 1: true, 3: true, 4: false} {
		if err := queues.CheckPermits(n, 3); (err == nil) != fits || err != nil && !errors.Is(err, lock.ErrPermits) {
			t.Errorf("%d of 3 permits: %v", n, err)
		}
	}
}

// turns are the answers of the servers about an entry, one after another.
type turns struct {
	next      []queues.Turn
	failure   error // of the request after the last answer
	changed   int   // times that Changed was called
	announced int
}

func (p *turns) Turn(context.Context) (t queues.Turn, err error) {
	if len(p.next) == 0 {
		return t, p.failure
	}
	t, p.next = p.next[0], p.next[1:]
	return t, nil
}

func (p *turns) Changed(context.Context, queues.Turn) error { p.changed++; return nil }
func (p *turns) Announce()                                  { p.announced++ }

// TestAwait: an entry waits until it is its turn, announces that if its kind does, and says why it ends without.
func TestAwait(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	behind, now := queues.Turn{Found: true, After: "a"}, queues.Turn{Found: true, Now: true}
	announce, gone := queues.Turn{Found: true, Now: true, Announce: true}, queues.Turn{}
	failure := errors.New("no reply")
	for name, c := range map[string]struct {
		ctx       context.Context
		place     turns
		wait      bool
		want      error // nil: the lock is granted
		not       error
		changed   int
		announced int
	}{
		"at once":   {ctx: t.Context(), place: turns{next: []queues.Turn{now}}},
		"after two": {ctx: t.Context(), place: turns{next: []queues.Turn{behind, behind, now}}, wait: true, changed: 2},
		"announced": {ctx: t.Context(), place: turns{next: []queues.Turn{announce}}, announced: 1},
		"held":      {ctx: t.Context(), place: turns{next: []queues.Turn{behind, now}}, want: lock.ErrHeld},
		"removed": {
			ctx: t.Context(), place: turns{next: []queues.Turn{behind, gone}}, wait: true, want: lock.ErrLost, changed: 1,
		},
		"failed": {ctx: t.Context(), place: turns{failure: failure}, wait: true, want: failure, not: lock.ErrHeld},
		"ended behind": {
			ctx: ended, place: turns{next: []queues.Turn{behind}, failure: failure}, wait: true, want: lock.ErrHeld, changed: 1,
		},
		"ended unlearned": {ctx: ended, place: turns{failure: failure}, wait: true, want: failure, not: lock.ErrHeld},
	} {
		err := queues.Await(c.ctx, &c.place, c.wait)
		if !errors.Is(err, c.want) || c.not != nil && errors.Is(err, c.not) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if c.place.changed != c.changed || c.place.announced != c.announced {
			t.Errorf("%s: waited %d times, announced %d times; want %d and %d",
				name, c.place.changed, c.place.announced, c.changed, c.announced)
		}
	}
}
