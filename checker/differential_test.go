package checker

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/exclusion"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/linear"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// random is how many of n random histories a test judges: in the short form of the test a quarter.
func random(n int) int {
	if race.Short() {
		return n / 4
	}
	return n
}

var rounds = flag.Int("rounds", 40000, "random histories of the differential test")

// tally counts the comparisons of a differential test.
type tally struct{ histories, illegal, exact, tries, unknown int }

// differ compares the sweep with porcupine's search on one history.
func differ(h *history.History, t *tally) error {
	v := bounds.New(h, given.Options{})
	for i, k := range linear.KeyedOps(v) {
		if len(k.Spans) == 0 || k.Unjudgeable {
			continue
		}
		linear.Prepare(v, &k)
		model := search.Model(k.Kind, 0, nil)
		ops := linear.ModelOps(v, &k)
		illegal := !porcupine.CheckOperations(model, search.Operations(ops, 0))
		flaws, overlaps := 0, 0
		linear.Sweep(v, &k, 0, func(f linear.Flaw) {
			flaws++
			if f.Kind == search.OpGrant || (f.Kind == search.OpBadToken && f.X >= 0) {
				overlaps++
			}
		})
		t.count(&k, ops, illegal)
		switch {
		case flaws > 0 && !illegal:
			return fmt.Errorf("the sweep finds %d flaws, porcupine an order (exact: %v)", flaws, k.Exact)
		case flaws == 0 && illegal && k.Exact:
			return fmt.Errorf("porcupine finds no order, the sweep no flaw")
		}
		if r := exclusion.Check(v, given.Options{}); r.Outcome == property.Violated && !illegal {
			return fmt.Errorf("exclusion is violated, but there is a legal order: %s", r.Summary)
		}
		window := linear.WindowOps(v, v.ByKey[i])
		if bad := !porcupine.CheckOperations(model, search.Operations(window, 0)); bad != (overlaps > 0) && k.Exact {
			return fmt.Errorf("the window of all holds is illegal: %v; the sweep finds %d of holds", bad, overlaps)
		}
	}
	return nil
}

func (t *tally) count(k *linear.KeyOps, ops []search.Op, illegal bool) {
	t.histories++
	if illegal {
		t.illegal++
	}
	if k.Exact {
		t.exact++
	}
	if len(k.Busy) > 0 {
		t.tries++
	}
	for _, op := range ops {
		if op.Unknown {
			t.unknown++
			return
		}
	}
}

func TestSweepAgreesWithPorcupine(t *testing.T) {
	race.Skip(t)
	var seen tally
	for seed := range uint64(random(*rounds)) {
		h := randomHistory(seed)
		if err := differ(h, &seen); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, dump(h))
		}
	}
	t.Logf("%+v", seen)
	if share := float64(seen.illegal) / float64(seen.histories); share < 0.1 || share > 0.5 {
		t.Errorf("%.0f %% of the histories are illegal: the test has lost its edge", 100*share)
	}
	if seen.exact < seen.histories/2 || seen.tries < seen.histories/10 || seen.unknown < seen.histories/10 {
		t.Errorf("too few of the histories have what is to be compared: %+v", seen)
	}
}

// FuzzSweep does the same for seeds and events of a fuzzer, and holds Judge to its documentation.
func FuzzSweep(f *testing.F) {
	f.Add(uint64(1), []byte{})
	f.Add(uint64(9), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Fuzz(func(t *testing.T, seed uint64, raw []byte) {
		h := randomHistory(seed)
		if len(raw) > 3 {
			h = rawHistory(raw)
		}
		var seen tally
		if err := differ(h, &seen); err != nil {
			t.Fatalf("%v\n%s", err, dump(h))
		}
		j := Judge(h, property.Options{})
		if len(j.Results) != len(Catalog()) || j.Sentence == "" {
			t.Fatalf("incomplete judgement %+v", j)
		}
		for _, r := range j.Results {
			if r.Outcome == property.Undecided && strings.Contains(r.Summary, "defect") {
				t.Fatalf("%s: %s\n%s", r.Property, r.Summary, dump(h))
			}
		}
		if err := WriteLinearization(&bytes.Buffer{}, h, j); err != nil && !errors.Is(err, ErrNothingToShow) {
			t.Fatal(err)
		}
	})
}

// rawHistory decodes bytes as events, in any order.
func rawHistory(raw []byte) *history.History {
	fs := []string{history.Acquire, history.Release, history.Try, history.Lost, history.Crash, history.Renew,
		history.Touch}
	var events []history.Event
	for i := 0; i+2 < len(raw) && len(events) < 40; i += 3 {
		a, b, c := raw[i], raw[i+1], raw[i+2]
		e := history.Event{
			Index: int64(len(events)), Type: history.Type(1 + a%4), F: fs[int(a/4)%len(fs)], Key: "k",
			Process: history.Process(b % 5), Value: &history.Value{Token: uint64(c % 7)},
		}
		if e.F == history.Touch {
			e.Value.Touch = &history.TouchValue{Read: int64(c % 3), Found: int64(c % 2), Fenced: c > 128}
		}
		if len(events) > 0 {
			e.Time = events[len(events)-1].Time
		}
		e.Time += 0
		if c%3 > 0 {
			e.Time++
		}
		events = append(events, e)
	}
	h, err := history.Build(events)
	if err != nil {
		panic(err)
	}
	return h
}

func dump(h *history.History) string {
	var b bytes.Buffer
	for _, s := range h.Spans {
		fmt.Fprintf(&b, "p%d %d owner %s [%d,%d] %v busy %v\n", s.Process, s.Op, h.Owners[s.Owner], s.Call, s.Return,
			s.Outcome, s.Busy)
	}
	for _, n := range h.Notices {
		fmt.Fprintf(&b, "p%d %s owner %s %d\n", n.Process, n.F, h.Owners[n.Owner], n.Time)
	}
	return b.String()
}
