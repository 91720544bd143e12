package runner

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// TestPlannedFaultNotInjected: a run without a fault that its scenario lists has tested less than the scenario
// says, so it is inconclusive.
func TestPlannedFaultNotInjected(t *testing.T) {
	needRedis(t)
	for name, faults := range map[string]string{
		"trigger that never fires": `[{when: lost, fault: kill, target: n1}]`,
		"the same target twice":    `[{fault: pause-node, target: master}, {fault: pause-node, target: n1}]`,
		"one injected, one missed": `[{when: acquired, fault: kill, target: n1}, {when: promoted, fault: kill, target: n2}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := load(t, "redlock-two-masters-down", "duration=800ms", "faults="+faults)
			out, err := Run(context.Background(), options(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if out.Judgement.Verdict != checker.Inconclusive || !strings.Contains(out.Judgement.Sentence, "was not injected") {
				t.Errorf("%s: %s", out.Judgement.Verdict, out.Judgement.Sentence)
			}
		})
	}
}

// TestFaultsOfOneKindDoNotHealEachOther: a second pause of a paused client is refused, so that the first lasts as
// long as recorded.
func TestFaultsOfOneKindDoNotHealEachOther(t *testing.T) {
	needRedis(t)
	s := load(t, "gc-pause", "duration=1500ms", "expect={}", `faults=[{after: 200ms, fault: pause-client, target: "client:0", for: 800ms}, `+
		`{after: 400ms, fault: pause-client, target: "client:0", for: 100ms}]`)
	out, err := Run(context.Background(), options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.ReadFile(out.Dir.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	h.Clients = out.Manifest.Clients
	var begin, end int64
	for _, f := range h.Faults {
		switch f.Phase {
		case history.TookEffect:
			begin = int64(f.Time)
		case history.Healed:
			end = int64(f.Time)
		}
	}
	if begin == 0 || end <= begin {
		t.Fatalf("no pause in %v", h.Faults)
	}
	// The client continues shortly before that is recorded, and its last reply may be read shortly after it stopped. From
	// 250 to 600 of the 800 ms it must be paused; the second fault would continue it after 300.
	begin, end = begin+int64(250*time.Millisecond), min(end, begin+int64(600*time.Millisecond))
	for _, s := range h.Spans {
		back := int64(s.Return)
		if s.Process.Client(h.Clients) == 0 && back > begin && back < end {
			t.Errorf("client 0 replied at %v, during its pause", s.Return)
		}
	}
}
