package reports

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestSplitVotes: two clients get one vote each, twice, while a third waits. It is the cause if nobody was granted the
// lock between the two times: samples taken during a handover look the same. The faults that delay masters are named.
func TestSplitVotes(t *testing.T) {
	for _, granted := range []bool{false, true} {
		t.Run(fmt.Sprintf("granted between %v", granted), func(t *testing.T) {
			s := newSynth("split", "orders", 3, cluster.Topology{Kind: cluster.Quorum, Masters: 3}, 3)
			for id, f := range []struct{ name, target string }{
				{"latency", "n1+n2+n3"}, {"latency", "client:1"}, {"clock-jump", "n1"},
			} {
				s.fault(5, f.name, history.FaultValue{ID: id + 1, Phase: history.Injected, Target: f.target})
				s.fault(6, f.name, history.FaultValue{ID: id + 1, Phase: history.TookEffect, Target: f.target})
			}
			s.hold(2, "c2-1", 0, holdTimes{20, 3000, 3100, 1900})
			if granted {
				s.hold(0, "c0-1", 0, holdTimes{90, 700, 900, 1900})
			}
			twice := func(owner string) func(float64) (string, float64) {
				return func(at float64) (string, float64) {
					if at >= 100 && at < 200 || at >= 1000 && at < 1100 {
						return owner, 1900
					}
					return "", 0
				}
			}
			s.watch("n1", "master", 0, 3200, twice("c0-1"))
			s.watch("n2", "master", 1, 3200, twice("c1-1"))
			s.watch("n3", "master", 2, 3200, noHolder)
			s.number()
			s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.WakeUp,
				Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Key: "orders", Clients: []int{2},
					Start: ms(20), End: ms(3000), Events: []int{s.find(history.OK, 2, history.Acquire, "")}}}}}}
			r := s.load(t)
			if got := r.Story.Cause == "split-votes"; got == granted {
				t.Fatalf("cause %s: %s", r.Story.Cause, r.Story.Sentence)
			}
			if granted {
				return
			}
			text := r.Story.Sentence
			if strings.Count(text, "(`") != 1 || !strings.Contains(text, "(`latency` on n1, n2 and n3 from") {
				t.Errorf("other faults than the delay of the masters are named: %s", text)
			}
		})
	}
}
