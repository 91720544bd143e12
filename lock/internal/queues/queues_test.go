package queues_test

import (
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
