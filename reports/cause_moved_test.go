package reports

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// movedAddressRun: the master's address moves from n1 to n2 at 0.1 s, but not for the target. Client 0 is granted the
// lock by n1, and client 1 by n2, just after client 1 has released it there. value returns the value that servers store
// for an owner; empty: none is known.
func movedAddressRun(target string, value func(owner string) string) *synth {
	s := newSynth("moved", "orders", 3, cluster.Topology{Kind: cluster.Replicated, Replicas: 2}, 2)
	s.fault(100, "endpoint-change", history.FaultValue{ID: 1, Phase: history.Injected, Target: target})
	s.fault(110, "endpoint-change", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: target})
	s.fault(3000, "endpoint-change", history.FaultValue{ID: 1, Phase: history.Healed, Target: target})
	s.hold(1, "c1-1", 0, holdTimes{300, 301, 1504, 1900})
	s.hold(1, "c1-2", 0, holdTimes{1506, 1508, 1800, 1900})
	s.hold(0, "c0-1", 0, holdTimes{1400, 1507, 1800, 1900})
	s.watch("n1", "master", 0, 2000, func(t float64) (string, float64) {
		owner, ttl := owned("c0-1", 1506, 1800, 2000)(t)
		if owner == "" {
			return "", 0
		}
		return value(owner), ttl
	})
	s.watch("n2", "slave", 0, 120, noHolder)
	s.watch("n2", "master", 120, 2000, func(t float64) (string, float64) {
		for _, f := range []func(float64) (string, float64){
			owned("c1-1", 300, 1505, 2000), owned("c1-2", 1505, 1800, 2000),
		} {
			if owner, ttl := f(t); owner != "" {
				return value(owner), ttl
			}
		}
		return "", 0
	})
	s.number()
	events := []int{s.find(history.OK, 0, history.Acquire, "c0-1"), s.find(history.OK, 1, history.Acquire, "c1-2")}
	s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.LeaseExclusion,
		Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Class: checker.BrokenPromise, Key: "orders",
			Clients: []int{0, 1}, Owners: []string{"c0-1", "c1-2"}, Start: ms(1508), End: ms(1800), Events: events}}}}}
	return s
}

// TestMovedAddressWithoutOwners: the samples need not show who has the lock if the fault names the client that still
// reached the old master. If it names another client, or all of them, they have to show it.
func TestMovedAddressWithoutOwners(t *testing.T) {
	named := func(owner string) string { return owner }
	same := func(string) string { return "locked" }
	unknown := func(string) string { return "" }
	for _, test := range []struct {
		name   string
		target string
		value  func(string) string
		moved  bool
	}{
		{"values name owners", "client:0", named, true},
		{"all holds have one value", "client:0", same, true},
		{"nothing is known of values", "client:0", unknown, true},
		{"values name owners, all clients are hit", "all", named, true},
		{"all holds have one value, all clients are hit", "all", same, false},
		{"all holds have one value, another client is hit", "client:2", same, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			story := movedAddressRun(test.target, test.value).load(t).Story
			if got := story.Cause == "moved-address"; got != test.moved || story.Cause == "taken-over-twice" {
				t.Fatalf("cause %s: %s", story.Cause, story.Sentence)
			}
			const want = "the master's address moved from n1 to n2 at 0.100 s (`endpoint-change`), but client 0 still reached " +
				"n1 and was granted it there at 1.507 s; n2 granted it to client 1 at 1.508 s"
			if test.moved && !strings.Contains(story.Sentence, want) {
				t.Errorf("%s, want %q", story.Sentence, want)
			}
		})
	}
}
