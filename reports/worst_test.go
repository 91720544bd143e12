package reports

import (
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestWorstIsExplained: of equally severe violations, the page explains one with a known mechanism, even if another one
// is longer.
func TestWorstIsExplained(t *testing.T) {
	s := stallRun()
	explained := s.j.Results[0].Violations[0]
	plain := explained
	plain.Clients, plain.Owners, plain.Events = nil, nil, nil
	plain.Start, plain.End = explained.Start-ms(100), explained.End+ms(500)
	s.j.Results[0].Violations = []checker.Violation{plain, explained}
	r := s.load(t)
	if got := r.Worst.Start; got != explained.Start {
		t.Errorf("the page explains the violation at %v (%s), want that at %v", got, r.Story.Cause, explained.Start)
	}
	if r.Story.Cause != "stalled-holder" {
		t.Errorf("cause %s: %s", r.Story.Cause, r.Story.Sentence)
	}
}

// TestSlowGrant: a quorum lock is promised from 2.5 s to 3.5 s, and nobody else is granted it. It was granted too late
// only if a majority kept it for less time, and let it expire.
func TestSlowGrant(t *testing.T) {
	lease := func(from, ttl float64) func(float64) (string, float64) {
		return owned("c0-1-aaaa", from, from+ttl, ttl)
	}
	deleted := func(from float64) func(float64) (string, float64) { return owned("c0-1-aaaa", from, from+300, 1000) }
	for _, test := range []struct {
		name  string
		nodes [5]func(float64) (string, float64)
		cause string
		text  string
		fault string
	}{
		{"three of five expire early", [5]func(float64) (string, float64){lease(1000, 1000), lease(1500, 1000),
			lease(2000, 1000), lease(2490, 1020), lease(2490, 1020)}, "granted-too-late",
			"Client 0 was granted `orders` at 2.500 s and promised " +
				"it until 3.500 s, but its lease ended on n1 by 2.000 s, on n2 by 2.500 s and on n3 by 3.000 s; n1, n2 and n3 " +
				"were slowed down from 1.010 s (`slow-node`)", "slow-node"},
		{"three of five lost power", [5]func(float64) (string, float64){lease(1000, 1000), lease(1500, 1000),
			lease(2000, 1000), lease(2490, 1020), lease(2490, 1020)}, "fault-between", "", "power-loss"},
		{"two of five", [5]func(float64) (string, float64){lease(1000, 1000), lease(1500, 1000), lease(2490, 1020),
			lease(2490, 1020), lease(2490, 1020)}, "fault-between", "", "slow-node"},
		{"deleted, not expired", [5]func(float64) (string, float64){deleted(2000), deleted(2000), deleted(2000),
			lease(2490, 1020), lease(2490, 1020)}, "fault-between", "", "slow-node"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSynth("slow", "orders", 2, cluster.Topology{Kind: cluster.Quorum, Masters: 5}, 5)
			s.fault(1000, test.fault, history.FaultValue{ID: 1, Phase: history.Injected, Target: "n1+n2+n3"})
			s.fault(1010, test.fault, history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "n1+n2+n3"})
			s.hold(0, "c0-1-aaaa", 0, holdTimes{requested: 990, from: 2500, to: 3400, valid: 1000})
			for i, holder := range test.nodes {
				s.watch(s.m.Nodes[i].Name, "master", 900, 3800, holder)
			}
			s.number()
			granted := s.find(history.OK, 0, history.Acquire, "")
			s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.Honesty,
				Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Class: checker.BrokenPromise,
					Text: "client 0 was promised orders, but it was not held", Key: "orders", Clients: []int{0},
					Owners: []string{"c0-1-aaaa"}, Start: ms(2600), End: ms(3400), Events: []int{granted - 1, granted}}}}}}
			r := s.load(t)
			if r.Story.Cause != test.cause || test.text != "" && r.Story.Sentence != test.text {
				t.Errorf("cause %s: %s", r.Story.Cause, r.Story.Sentence)
			}
			if test.text != "" {
				checkProofs(t, r)
			}
		})
	}
}

// TestSlowGrantOfTheSecond: of two holders, the second was granted the lock too late.
func TestSlowGrantOfTheSecond(t *testing.T) {
	s := newSynth("slow", "orders", 2, cluster.Topology{Kind: cluster.Quorum, Masters: 5}, 5)
	s.fault(900, "slow-node", history.FaultValue{ID: 1, Phase: history.Injected, Target: "n1+n2+n3"})
	s.fault(910, "slow-node", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "n1+n2+n3"})
	s.hold(0, "c0-1-aaaa", 0, holdTimes{requested: 990, from: 3610, to: 4400, valid: 1000})
	s.hold(1, "c1-1-bbbb", 0, holdTimes{requested: 980, from: 3600, to: 4400, valid: 1000})
	both := func(second, first float64) func(float64) (string, float64) {
		return func(t float64) (string, float64) {
			if o, ttl := owned("c0-1-aaaa", second, second+1000, 1000)(t); o != "" {
				return o, ttl
			}
			return owned("c1-1-bbbb", first, first+1000, 1000)(t)
		}
	}
	for i, holder := range []func(float64) (string, float64){both(1000, 2800), both(1500, 3100), both(2000, 3580),
		both(3500, 9000), both(3500, 9000)} {
		s.watch(s.m.Nodes[i].Name, "master", 900, 4500, holder)
	}
	s.number()
	first, second := s.find(history.OK, 1, history.Acquire, ""), s.find(history.OK, 0, history.Acquire, "")
	s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.LeaseExclusion,
		Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Class: checker.BrokenPromise, Key: "orders",
			Clients: []int{1, 0}, Owners: []string{"c1-1-bbbb", "c0-1-aaaa"}, Start: ms(3610), End: ms(4400),
			Events: []int{first, second}}}}}}
	r := s.load(t)
	want := "Client 1 and client 0 both held `orders` for 790 ms: client 0 was granted it at 3.610 s and promised it " +
		"until 4.610 s, but its lease ended on n1 by 2.000 s, on n2 by 2.500 s and on n3 by 3.000 s; n1, n2 and n3 were " +
		"slowed down from 0.910 s (`slow-node`); client 1 got the lock at 3.600 s"
	if r.Story.Sentence != want {
		t.Errorf("cause %s: %s", r.Story.Cause, r.Story.Sentence)
	}
	checkProofs(t, r)
}
