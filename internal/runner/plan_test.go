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

// TestPlannedFaultThatNeverCame: a run without a fault that its plan lists has
// tested less than it says, so it cannot be safe.
func TestPlannedFaultThatNeverCame(t *testing.T) {
	needRedis(t)
	for name, faults := range map[string]string{
		"trigger that nothing pulls":  `[{when: lost, fault: kill, target: n1}]`,
		"the same target twice":       `[{fault: pause-node, target: master}, {fault: pause-node, target: n1}]`,
		"one that comes, one that is": `[{when: acquired, fault: kill, target: n1}, {when: promoted, fault: kill, target: n2}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := load(t, "redlock-two-masters-down", "duration=800ms", "faults="+faults)
			out, err := Run(context.Background(), options(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if out.Judgement.Verdict != checker.Inconclusive || !strings.Contains(out.Judgement.Sentence, "never came") {
				t.Errorf("%s: %s", out.Judgement.Verdict, out.Judgement.Sentence)
			}
		})
	}
}

// TestFaultsOfOneKindDoNotHealEachOther: the second stop of a stopped client is
// refused, so that it stands still for as long as the record says.
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
	// The client goes on a little before that is recorded, and what it answered before it
	// stopped may be read a little later; 600 ms of the 800 are certain but for the first
	// 250, and the second fault would have let it go on after 300.
	begin, end = begin+int64(250*time.Millisecond), min(end, begin+int64(600*time.Millisecond))
	for _, s := range h.Spans {
		back := int64(s.Return)
		if s.Process.Client(h.Clients) == 0 && back > begin && back < end {
			t.Errorf("client 0 answered at %v, while it stood still", s.Return)
		}
	}
}
