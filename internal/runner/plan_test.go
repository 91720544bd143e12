package runner

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
)

// TestPlannedFaultNotInjected: a run without a fault that its scenario lists has tested less than the scenario
// says, so it is inconclusive.
func TestPlannedFaultNotInjected(t *testing.T) {
	needRedis(t)
	const quorum, oneMaster = "redlock-two-masters-down", "contention"
	for name, c := range map[string]struct{ scenario, faults, until, why string }{
		"trigger that never fires": {quorum, `[{when: lost, fault: kill, target: n1}]`, `"f":"acquire"`,
			"its trigger, lost, never fired"},
		"the same target twice": {oneMaster, `[{fault: pause-node, target: master}, {fault: pause-node, target: n1}]`,
			`"phase":"missed"`, "already controls"},
		"one injected, one missed": {
			quorum, `[{when: acquired, fault: kill, target: n1}, {when: promoted, fault: kill, target: n2}]`,
			`"phase":"effect"`, "its trigger, promoted, never fired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := load(t, c.scenario, untilDone, "faults="+c.faults)
			for try := 1; ; try++ {
				out := runUntil(t, options(t, s), func(text string) bool { return strings.Contains(text, c.until) })
				exercised := out.Judgement.Result(checker.Exercised) // a busy machine may decide others
				if out.Judgement.Verdict != checker.Safe && exercised != nil &&
					exercised.Outcome == checker.Undecided && strings.Contains(exercised.Summary, "was not injected") &&
					strings.Contains(exercised.Summary, c.why) {
					return
				}
				const late = "no node reports the role of master" // no sample was answered in time
				if exercised == nil || !strings.Contains(exercised.Summary, late) || !rerun.Because(t, try, late) {
					t.Fatalf("%s: %s; exercised: %+v", out.Judgement.Verdict, out.Judgement.Sentence, exercised)
				}
			}
		})
	}
}

// TestOptionalFaultNotInjected: an optional step delays no other step, and a run without it is not inconclusive.
func TestOptionalFaultNotInjected(t *testing.T) {
	s := load(t, "contention", "duration=1500ms",
		`faults=[{when: promoted, fault: kill, target: n1, optional: true}, {when: acquired, fault: script-flush}]`)
	out, _ := simulate(t, s, 1, 0)
	if j := out.Judgement; j.Verdict != checker.Safe {
		t.Errorf("%s: %s; exercised: %+v", j.Verdict, j.Sentence, j.Result(checker.Exercised))
	}
}

// TestFaultsOfOneKindDoNotHealEachOther: a second pause of a paused client is refused, so that the first lasts until
// the run ends.
func TestFaultsOfOneKindDoNotHealEachOther(t *testing.T) {
	needRedis(t)
	s := load(t, "gc-pause", untilDone, "expect=null", `faults=[{fault: pause-client, target: "client:0", for: 1h}, `+
		`{after: 100ms, fault: pause-client, target: "client:0", for: 1ms}]`)
	out := runUntil(t, options(t, s), func(text string) bool {
		return strings.Contains(text, `"phase":"missed"`) && strings.Contains(text, `"phase":"effect"`)
	})
	h, err := history.ReadFile(out.Dir.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	var began, ended, refused []history.Fault
	for _, f := range h.Faults {
		switch f.Phase {
		case history.TookEffect:
			began = append(began, f)
		case history.Healed:
			ended = append(ended, f)
		case history.Missed:
			refused = append(refused, f)
		}
	}
	if len(began) != 1 || len(ended) != 1 || len(refused) != 1 || !strings.Contains(refused[0].Detail, "already controls") {
		t.Fatalf("took effect %v, healed %v, refused %v; want one each", began, ended, refused)
	}
	if refused[0].Time > ended[0].Time {
		t.Errorf("the pause ended at %v, before the second was refused at %v", ended[0].Time, refused[0].Time)
	}
}

// TestFirstFaultsComeBeforeTheClients: a fault that waits for nothing is in force when the first client begins. On a
// busy machine the grants of semaphore-failover were replicated before its hold of the replication.
func TestFirstFaultsComeBeforeTheClients(t *testing.T) {
	out, _ := simulate(t, load(t, "semaphore-failover"), 1, 0)
	h, err := history.ReadFile(out.Dir.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	first := h.Faults[0]
	if first.Name != "replication-hold" || first.Phase != history.Injected || first.Index > h.Spans[0].Invoked {
		t.Errorf("the first fault is %+v, the first request is event %d", first, h.Spans[0].Invoked)
	}
}
