package checker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// This file crosses all properties with all assumptions about gaps in histories of other suites.

// runUnaware is a run of the correct lock of sound_test.go, or of one with a flaw; its clients do not know leases.
func runUnaware(seed uint64, kind, flaw string) (events []history.Event, clients int) {
	l := &lockModel{r: rand.New(rand.NewPCG(seed, 78)), kind: kind, flaw: flaw, held: make(map[string]*modelHold),
		leases: true, unaware: true}
	l.limit = 1 + l.r.IntN(4)
	for i := range 2 + l.r.IntN(3) {
		l.clients = append(l.clients, &modelClient{process: i, next: l.r.IntN(20)})
	}
	for range 150 + l.r.IntN(400) {
		l.tick()
	}
	l.closing = true
	busy := func(a *modelClient) bool { return a.op != "" || a.has != [2]int{} }
	for slices.ContainsFunc(l.clients, busy) {
		l.tick()
	}
	return l.events, len(l.clients)
}

// asRecordedElsewhere writes events as a suite does whose histories need the assumptions.
func asRecordedElsewhere(events []history.Event, clients int, assume []foreign.Assumption) string {
	needs := func(a foreign.Assumption) bool { return slices.Contains(assume, a) }
	var b strings.Builder
	for _, e := range events {
		process, value, typ := int(e.Process), `"done"`, e.Type
		if needs(foreign.NumbersReused) {
			process %= clients
		}
		switch grants := e.F == history.Acquire || e.F == history.Try; {
		case e.Type == history.Invoke:
			value = fmt.Sprintf("{:mode %q", e.Value.Mode)
			if e.Value.Permits > 0 {
				value += fmt.Sprintf(" :permits %d :limit %d", e.Value.Permits, e.Value.Limit)
			}
			value += "}"
		case e.Type == history.OK && grants && needs(foreign.ZeroIsNone):
			value = "{:fence 0}"
		case e.Type == history.Fail && needs(foreign.EmptyIsFail):
			typ, value = history.OK, map[bool]string{true: `"false"`, false: `""`}[e.F == history.Release]
		}
		fmt.Fprintf(&b, "{:process %d :type :%s :f :%s :key \"k\" :time %d :value %s", process, typ, e.F, e.Time, value)
		if typ == history.Fail {
			fmt.Fprintf(&b, " :error :%s", e.Error.Code)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// assumed are the assumptions with the bits of a number, and always that a refusal ends a lease, because the clients do
// not know leases.
func assumed(bits int) []foreign.Assumption {
	assume := []foreign.Assumption{foreign.NotHeldEnds}
	for i, a := range []foreign.Assumption{foreign.EmptyIsFail, foreign.ZeroIsNone, foreign.NumbersReused} {
		if bits>>i&1 == 1 {
			assume = append(assume, a)
		}
	}
	return assume
}

// judgeElsewhere judges events as another suite records them.
func judgeElsewhere(t *testing.T, events []history.Event, clients int, assume []foreign.Assumption) checker.Judgement {
	t.Helper()
	text := asRecordedElsewhere(events, clients, assume)
	h, _, err := foreign.Read(strings.NewReader(text), "x", foreign.Options{Assume: assume})
	if err != nil {
		t.Fatal(err)
	}
	return checker.Judge(h, checker.Options{Search: time.Second})
}

// TestAssumptionsAndProperties: no property convicts a correct lock, in whichever way its suite records it, if the
// assumptions fit the suite. A client that relied on the lock after the end of its lease is no fault of the lock.
func TestAssumptionsAndProperties(t *testing.T) {
	race.Skip(t)
	for bits := range 8 {
		assume := assumed(bits)
		t.Run(fmt.Sprint(assume), func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{"mutex", "readers-writer", "semaphore"} {
				for seed := range uint64(60) {
					events, clients := runUnaware(seed, kind, "")
					if why := convictedElsewhere(judgeElsewhere(t, events, clients, assume)); why != "" {
						t.Fatalf("%s, seed %d: %s\n%s", kind, seed, why, asRecordedElsewhere(events, clients, assume))
					}
				}
			}
		})
	}
}

// convictedElsewhere says which property wrongly convicts a correct lock; "": none.
func convictedElsewhere(j checker.Judgement) string {
	for _, r := range j.Results {
		for _, v := range r.Violations {
			if v.Class != checker.OutlivedLease {
				return fmt.Sprintf("%s: %s", r.Property, v.Text)
			}
		}
		if strings.Contains(r.Summary, "defect") {
			return fmt.Sprintf("%s: %s", r.Property, r.Summary)
		}
	}
	return ""
}

// TestAssumptionsAndFlaws: the same lock with a flaw is convicted, whatever is assumed.
func TestAssumptionsAndFlaws(t *testing.T) {
	race.Skip(t)
	for bits := range 8 {
		assume := assumed(bits)
		for kind, flaw := range map[string]string{
			"mutex": "lets two in", "readers-writer": "lets two in", "semaphore": "lets two in",
		} {
			found := 0
			for seed := range uint64(40) {
				events, clients := runUnaware(seed, kind, flaw)
				if judgeElsewhere(t, events, clients, assume).Class == checker.BrokenPromise {
					found++
				}
			}
			if found < 10 {
				t.Errorf("%v: a %s that %s is convicted in %d of 40 runs only", assume, kind, flaw, found)
			}
		}
	}
}
