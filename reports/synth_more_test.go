package reports

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// stallRun: a client is stopped for longer than its lease and writes late.
func stallRun() *synth {
	s := newSynth("gc-pause", "orders", 3, cluster.Topology{Kind: cluster.Single}, 1)
	s.m.Expect = map[string]string{"exclusion": "violated", "lease-exclusion": "holds"}
	s.hold(2, "own-2-aaaa", 7, holdTimes{20, 1120, 5120, 1990})
	s.hold(0, "own-0-bbbb", 8, holdTimes{1200, 3130, 4100, 1990})
	s.hold(1, "own-1-cccc", 9, holdTimes{1300, 4102, 5300, 1990})
	s.touch(4090, 0, "own-0-bbbb", 8, history.TouchValue{Read: 5, Found: 5})
	s.touch(5100, 2, "own-2-aaaa", 7, history.TouchValue{Read: 5, Found: 6, MaxSeen: 8})
	s.touch(5290, 1, "own-1-cccc", 9, history.TouchValue{Read: 6, Found: 7, MaxSeen: 8})
	s.fault(1130, "pause-client", history.FaultValue{ID: 1, Phase: history.Injected, Target: "client:2"})
	s.fault(1131, "pause-client", history.FaultValue{ID: 1, Phase: history.TookEffect,
		Target: "client:2", Detail: "the process is stopped"})
	s.fault(5098, "pause-client", history.FaultValue{ID: 1, Phase: history.Healed, Target: "client:2"})
	s.watch("n1", "master", 0, 5400, func(t float64) (string, float64) {
		for _, f := range []func(float64) (string, float64){owned("own-2-aaaa", 1119, 3119, 2000),
			owned("own-0-bbbb", 3130, 4100, 2000), owned("own-1-cccc", 4102, 5300, 2000)} {
			if o, ttl := f(t); o != "" {
				return o, ttl
			}
		}
		return "", 0
	})
	s.number()
	v := checker.Violation{Rule: "two holds of one lock may not overlap", Class: checker.OutlivedLease, Key: "orders",
		Text: "client 2 and client 0 held it at once", Clients: []int{2, 0}, Owners: []string{"own-2-aaaa", "own-0-bbbb"},
		Events: []int{s.find(history.OK, 2, history.Acquire, ""), s.find(history.OK, 0, history.Acquire, "")},
		Start:  ms(3130), End: ms(4100), Severity: ms(970)}
	s.j = checker.Judgement{Verdict: checker.Unsafe, Class: checker.OutlivedLease,
		Sentence: "the holder outlived its lease",
		Results: []checker.Result{
			{Property: checker.Exclusion, Outcome: checker.Violated, Summary: "1 overlap", Total: 1,
				Violations: []checker.Violation{v}},
			{Property: checker.LeaseExclusion, Outcome: checker.Holds, Summary: "no overlap inside the validity"},
			{Property: checker.Exercised, Outcome: checker.Holds, Summary: "the stall outlived the lease"},
		}}
	return s
}

// safeRun: two of five masters die under a quorum lock, without a violation.
func safeRun() *synth {
	s := newSynth("redlock-minority", "orders", 4, cluster.Topology{Kind: cluster.Quorum, Masters: 5}, 5)
	for i := range 48 {
		from := 20 + 100*float64(i)
		if i >= 20 {
			from += 310
		}
		p := history.Process(i % 4)
		s.hold(p, fmt.Sprintf("owner-%04d", i), uint64(i+1), holdTimes{from - 15, from, from + 80, 1900})
		s.touch(from+79, p, fmt.Sprintf("owner-%04d", i), uint64(i+1),
			history.TouchValue{Read: int64(i), Found: int64(i), MaxSeen: uint64(i)})
	}
	for i, node := range []string{"n2", "n4"} {
		t := 1050 + 1280*float64(i)
		s.fault(t, "kill", history.FaultValue{ID: i + 1, Phase: history.Injected, Target: node})
		s.fault(t+2, "kill", history.FaultValue{ID: i + 1, Phase: history.TookEffect, Target: node, Detail: node + " exited"})
	}
	down := map[string]float64{"n2": 1052, "n4": 2332}
	for _, n := range s.m.Nodes {
		until, dies := down[n.Name]
		if !dies {
			until = 5200
		}
		s.watch(n.Name, "master", 0, until, func(t float64) (string, float64) {
			for i := range 48 {
				from := 20 + 100*float64(i)
				if i >= 20 {
					from += 310
				}
				if o, ttl := owned(fmt.Sprintf("owner-%04d", i), from, from+80, 2000)(t); o != "" {
					return o, ttl
				}
			}
			return "", 0
		})
		s.watch(n.Name, "", until, 5200, noHolder)
	}
	s.number()
	s.j = checker.Judgement{Verdict: checker.Safe, Sentence: "nothing was violated", Results: []checker.Result{
		{Property: checker.Exclusion, Outcome: checker.Holds, Summary: "48 holds, none overlapped"},
		{Property: checker.Fencing, Outcome: checker.Holds, Summary: "48 tokens, all growing"},
		{Property: checker.Linearizable, Outcome: checker.NotApplicable, Summary: "left out"},
		{Property: checker.Exercised, Outcome: checker.Holds, Summary: "both kills hit while the lock was held"},
	}}
	return s
}

// idleRun: no contention, so nothing was tested.
func idleRun() *synth {
	s := newSynth("idle", "orders", 1, cluster.Topology{Kind: cluster.Single}, 1)
	s.hold(0, "own-0-aaaa", 0, holdTimes{10, 11, 420, 0})
	s.number()
	s.j = checker.Judgement{Verdict: checker.Inconclusive, Sentence: "the run tested nothing", Results: []checker.Result{
		{Property: checker.Exclusion, Outcome: checker.Holds, Summary: "1 hold"},
		{Property: checker.Exercised, Outcome: checker.Violated, Summary: "one client, no contention"},
	}}
	return s
}
