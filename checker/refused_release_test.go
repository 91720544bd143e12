package checker_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// refusedReleaseHistory draws a small history in which releases fail and leave the lock as it was, as in the strict
// reading of other suites' histories.
func refusedReleaseHistory(r *rand.Rand) []history.Event {
	var events []history.Event
	open := make([]string, 3) // by process: the operation in flight
	for range 6 + r.IntN(18) {
		p := r.IntN(len(open))
		e := history.Event{Index: int64(len(events)), Time: time.Duration(len(events)), Process: history.Process(p)}
		if e.F = open[p]; e.F == "" {
			e.Type, e.F = history.Invoke, []string{history.Acquire, history.Release}[r.IntN(2)]
			open[p] = e.F
		} else {
			open[p] = ""
			e.Type = history.OK
			if e.F == history.Release && r.IntN(2) == 0 || r.IntN(4) == 0 {
				e.Type, e.Held = history.Fail, e.F == history.Release
			}
		}
		events = append(events, e)
	}
	return events
}

// TestRefusedReleases checks that the sweep and porcupine's search agree, and that a history with two holders at once
// has no legal order.
func TestRefusedReleases(t *testing.T) {
	race.Skip(t)
	histories := 20_000
	if race.Short() {
		histories = 6_000
	}
	r := rand.New(rand.NewPCG(5, 6))
	counts := make(map[checker.Outcome]int)
	onlyOrder := 0
	for i := range histories {
		events := refusedReleaseHistory(r)
		h, err := history.Build(events)
		if err != nil {
			t.Fatal(err)
		}
		j := checker.Judge(h, checker.Options{Only: []checker.Property{checker.Exclusion, checker.Linearizable}})
		order, exclusion := j.Result(checker.Linearizable), j.Result(checker.Exclusion)
		if strings.Contains(order.Summary, "defect") {
			t.Fatalf("history %d: %s\n%s", i, order.Summary, lines(events))
		}
		counts[order.Outcome]++
		if exclusion.Outcome == checker.Violated && order.Outcome == checker.Holds {
			t.Fatalf("history %d: two holders at once, and yet a legal order\n%s", i, lines(events))
		}
		if exclusion.Outcome != checker.Violated && order.Outcome == checker.Violated {
			onlyOrder++
		}
	}
	t.Logf("%v; %d not linearizable without two holders at once", counts, onlyOrder)
	if counts[checker.Holds] < 500 || counts[checker.Violated] < 500 || onlyOrder < 500 {
		t.Errorf("the draw is one-sided: %v, %d", counts, onlyOrder)
	}
}

func lines(events []history.Event) string {
	var b []byte
	for i := range events {
		b = append(events[i].AppendJSON(b), '\n')
	}
	return string(b)
}
