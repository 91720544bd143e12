package cluster

import (
	"testing"

	"github.com/lockchaos/lockchaos/history"
)

func TestGrantIsSeenAtTheServer(t *testing.T) {
	state := func(owner string, count int, owners ...string) map[string]history.KeyState {
		return map[string]history.KeyState{"k": {Owner: owner, Count: count, Owners: owners}}
	}
	asks := Acquire{Key: "k", Owner: "a"}
	for _, c := range []struct {
		name        string
		request     Acquire
		now, before map[string]history.KeyState
		want        bool
	}{
		{"free", asks, nil, nil, false},
		{"its owner", asks, state("a", 1), nil, true},
		{"another owner", asks, state("b", 1), nil, false},
		{"one of several readers", asks, state("b", 0, "a", "b"), state("b", 0), true},
		{"the hold that it knows", Acquire{Key: "k", Owner: "a", Counted: 1}, state("a", 1), state("a", 1), false},
		{"a re-entry", Acquire{Key: "k", Owner: "a", Counted: 1}, state("a", 2), state("a", 1), true},
		{"a name of the lock's own, alone", Acquire{Key: "k", Owner: "a", Alone: true}, state("x", 0), nil, true},
		{"a name of the lock's own, unchanged", Acquire{Key: "k", Owner: "a", Alone: true}, state("x", 0), state("x", 0), false},
		{"another key", Acquire{Key: "j", Owner: "a", Alone: true}, state("a", 1), nil, false},
	} {
		if got := c.request.GrantedIn(c.now, c.before); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
