package checker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestLostLevelsHaveALegalOrder: a server with leases grants an owner several levels, each of which may be lost on its
// own. What it did is legal, and the sweep and the search agree about it.
func TestLostLevelsHaveALegalOrder(t *testing.T) {
	race.Skip(t)
	some := 0
	for seed := range uint64(3000) {
		events, lost := lostLevels(seed)
		h, err := history.Build(events)
		if err != nil {
			t.Fatal(err)
		}
		some += lost
		j := Judge(h, property.Options{})
		for _, p := range []property.Name{property.Exclusion, property.HoldCount, property.Linearizable} {
			if r := j.Result(p); r.Outcome != property.Holds {
				t.Fatalf("seed %d: %s %s: %s\n%s", seed, p, r.Outcome, r.Summary, eventLines(events))
			}
		}
	}
	if some < 1000 {
		t.Errorf("%d levels were lost: the test shows too little", some)
	}
}

func eventLines(events []history.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%d %s %d %s %v\n", e.Time, e.Type, e.Process, e.F, e.Value)
	}
	return b.String()
}

// lostLevels are the events of two clients that hold a reentrant lock by turns, and how many levels were lost before
// the rest was released.
func lostLevels(seed uint64) (events []history.Event, lost int) {
	r := rand.New(rand.NewPCG(seed, 11))
	now := time.Duration(0)
	add := func(typ history.Type, f string, p int, v history.Value) {
		now += time.Duration(1 + r.IntN(3))
		events = append(events, history.Event{Index: int64(len(events)), Time: now, Type: typ, F: f, Key: "k",
			Process: history.Process(p), Value: &v})
	}
	for round := range 6 {
		p := round % 2
		owner, levels, counted := fmt.Sprint("o", p, r.IntN(2)), 0, 0
		for range 12 {
			switch {
			case levels == 0 || r.IntN(3) == 0:
				levels++
				counted++
				add(history.Invoke, history.Acquire, p, history.Value{Owner: owner, Lease: time.Hour})
				count := levels + r.IntN(1+counted-levels)
				add(history.OK, history.Acquire, p, history.Value{Owner: owner, Valid: time.Hour, Count: count})
			case levels > 1 && r.IntN(2) == 0:
				levels--
				lost++
				add(history.Info, history.Lost, p, history.Value{Owner: owner, Count: levels})
			default:
				levels--
				counted--
				add(history.Invoke, history.Release, p, history.Value{Owner: owner})
				add(history.OK, history.Release, p, history.Value{Owner: owner})
			}
			if levels == 0 {
				break
			}
		}
		for ; levels > 0; levels-- {
			add(history.Invoke, history.Release, p, history.Value{Owner: owner})
			add(history.OK, history.Release, p, history.Value{Owner: owner})
		}
		if counted > levels { // the owner releases lost levels, too
			add(history.Invoke, history.Release, p, history.Value{Owner: owner})
			add(history.Fail, history.Release, p, history.Value{Owner: owner})
		}
	}
	return events, lost
}
