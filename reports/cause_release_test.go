package reports

import (
	"fmt"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestReleaseLostInFailover: a promoted replica has the permit that the old master had taken back. That is no cause if
// the permit was free on the replica meanwhile.
func TestReleaseLostInFailover(t *testing.T) {
	for _, free := range []bool{false, true} {
		t.Run(fmt.Sprintf("free meanwhile %v", free), func(t *testing.T) {
			s := newSynth("release-lost", "orders", 2, cluster.Topology{Kind: cluster.Sentinel, Replicas: 1}, 2)
			s.hold(0, "c0-1", 0, holdTimes{10, 20, 1000, 0})
			s.fault(500, "replication-hold", history.FaultValue{ID: 1, Phase: history.Injected, Target: "n1"})
			s.fault(510, "replication-hold", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "n1"})
			s.fault(1100, "kill", history.FaultValue{ID: 2, Phase: history.Injected, Target: "n1"})
			s.fault(1101, "kill", history.FaultValue{ID: 2, Phase: history.TookEffect, Target: "n1"})
			s.events = append(s.events, history.Event{Time: ms(4000), Type: history.Fail, Process: history.Nemesis,
				F: history.ProbeEvent, Key: "orders"})
			s.watch("n1", "master", 0, 1100, noHolder)
			s.watch("n2", "slave", 1, 1900, noHolder)
			s.watch("n2", "master", 1901, 4000, noHolder)
			for i := range s.samples {
				x := &s.samples[i]
				if x.Time > ms(20) && (x.Node == "n2" || x.Time < ms(1000)) && !(free && x.Time > ms(2000) && x.Time < ms(2100)) {
					x.Keys = map[string]history.KeyState{"orders": {Permits: 1, Limit: 1, TTL: -1}}
				}
			}
			s.number()
			s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.Recovery,
				Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Key: "orders", Clients: []int{0},
					Start: ms(1000), End: ms(4000), Text: "`orders` could not be acquired",
					Events: []int{s.find(history.Fail, history.Nemesis, history.ProbeEvent, "")}}}}}}
			r := s.load(t)
			if got := r.Story.Cause == "release-lost-in-failover"; got == free {
				t.Fatalf("cause %s: %s", r.Story.Cause, r.Story.Sentence)
			}
			want := "Client 0 released `orders` at 1.000 s, when n1 was the only master seen; n1 was killed at 1.101 s (`kill`), " +
				"while its writes were kept from n2 (`replication-hold` since 0.510 s); n2, seen as master from 1.901 s, lacked " +
				"that release: it still had the key at 3.981 s, with no expiry; after the run, at 4.000 s, an acquire was refused"
			if !free && r.Story.Sentence != want {
				t.Errorf("%s\nwant %s", r.Story.Sentence, want)
			}
			checkProofs(t, r)
		})
	}
}
