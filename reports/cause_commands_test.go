package reports

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// before adds the hold of client 2, which ends while the others ask for the lock.
type before func(*synth)

// grantedBefore adds an acquire of client 2, granted at 0.5 s with a validity of 1.5 s.
func (s *synth) grantedBefore() {
	s.add(10, history.Invoke, 2, history.Acquire, &history.Value{Owner: "c2-1"})
	s.add(500, history.OK, 2, history.Acquire, &history.Value{Owner: "c2-1", Valid: ms(1500), Count: 1})
}

func (s *synth) releasing(t float64) {
	s.add(t, history.Invoke, 2, history.Release, &history.Value{Owner: "c2-1"})
}

// killed adds the crash of client 2 with its fault.
func (s *synth) killed(t float64) {
	s.fault(t, "client-crash", history.FaultValue{ID: 2, Phase: history.Injected, Target: "client:2"})
	s.fault(t+10, "client-crash", history.FaultValue{ID: 2, Phase: history.TookEffect, Target: "client:2"})
	s.add(t+20, history.Info, 2, history.Crash, nil)
}

// twoGrantsRun: replies take 100 ms from 200 ms on, and one server grants the lock to client 0 and to client 1, which
// request it at the times asked, at 2.1 s and 2.2 s.
func twoGrantsRun(held before, asked [2]float64) *synth {
	s := newSynth("setnx", "orders", 3, cluster.Topology{Kind: cluster.Single}, 1)
	s.fault(190, "latency", history.FaultValue{ID: 1, Phase: history.Injected, Target: "all"})
	s.fault(200, "latency", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "all"})
	held(s)
	s.hold(0, "c0-1", 0, holdTimes{asked[0], 2100, 2600, 1900})
	s.hold(1, "c1-1", 0, holdTimes{asked[1], 2200, 2500, 1900})
	s.watch("n1", "master", 0, 2700, owned("c1-1", 2150, 2600, 2000))
	s.number()
	events := []int{s.find(history.OK, 0, history.Acquire, "c0-1"), s.find(history.OK, 1, history.Acquire, "c1-1")}
	s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.LeaseExclusion,
		Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Class: checker.BrokenPromise, Key: "orders",
			Clients: []int{0, 1}, Owners: []string{"c0-1", "c1-1"}, Start: ms(2200), End: ms(2500), Events: events}}}}}
	return s
}

// inFlight are requests that were sent before the hold before theirs ended.
func inFlight() [2]float64 { return [2]float64{20, 30} }

// takenOver is a case of [TestTakenOverTwice].
type takenOver struct {
	name  string
	held  before
	asked [2]float64
	cause string
	text  string
}

// takenOverCases are how the hold before the two ended, and the cause that is to be found.
func takenOverCases() []takenOver {
	const grants = ": it was granted to client 0 at 2.100 s and to client 1 at 2.200 s, 1.80 s before the validity of " +
		"client 0 ended"
	return []takenOver{
		{"killed while holding", func(s *synth) { s.grantedBefore(); s.killed(900) }, inFlight(), "taken-over-twice",
			"client 2 was killed at 0.910 s (`client-crash`), and its lease ended at 2.000 s, while the acquires of both " +
				"were in flight" + grants},
		{"killed while releasing", func(s *synth) { s.grantedBefore(); s.releasing(890); s.killed(900) }, inFlight(),
			"taken-over-twice", "client 2 was killed at 0.910 s (`client-crash`), and its lease ended at 2.000 s, while the " +
				"acquires of both were in flight" + grants},
		{"killed while releasing, before the end of its lease", func(s *synth) {
			s.add(1000, history.Invoke, 2, history.Acquire, &history.Value{Owner: "c2-1"})
			s.add(1500, history.OK, 2, history.Acquire, &history.Value{Owner: "c2-1", Valid: ms(1500), Count: 1})
			s.releasing(1890)
			s.killed(1900)
		}, inFlight(), "taken-over-twice", "client 2 was killed at 1.910 s (`client-crash`), and its release, sent at " +
			"1.890 s, has no reply, while the acquires of both were in flight" + grants},
		{"released", func(s *synth) {
			s.grantedBefore()
			s.releasing(1900)
			s.add(2050, history.OK, 2, history.Release, &history.Value{Owner: "c2-1"})
		}, inFlight(), "taken-over-twice", "client 2 released it at 1.900 s while the acquires of both were in " +
			"flight (`latency` from 0.200 s)" + grants},
		{"its lease ended", func(s *synth) {
			s.grantedBefore()
			s.releasing(2010)
			s.add(2060, history.Fail, 2, history.Release, &history.Value{Owner: "c2-1"})
		}, inFlight(), "taken-over-twice", "the lease of client 2 ended at 2.000 s while the acquires of both were in " +
			"flight (`latency` from 0.200 s)" + grants},
		{"its lease had ended before they were sent", func(s *synth) {
			s.grantedBefore()
			s.releasing(2010)
			s.add(2015, history.Fail, 2, history.Release, &history.Value{Owner: "c2-1"})
		}, [2]float64{2020, 2030}, "taken-over-twice", "the lease of client 2 ended at 2.000 s and then the acquires of " +
			"both were in flight (`latency` from 0.200 s)" + grants},
		{"released before the second acquire was sent", func(s *synth) {
			s.grantedBefore()
			s.releasing(1900)
			s.add(2050, history.OK, 2, history.Release, &history.Value{Owner: "c2-1"})
		}, [2]float64{20, 2060}, "fault-between", ""},
		{"released by a client that asks again", func(s *synth) {
			s.hold(0, "c0-0", 0, holdTimes{10, 500, 1900, 1500})
		}, [2]float64{1960, 30}, "taken-over-twice", "client 0 released it at 1.900 s and asked for it again at 1.960 s, " +
			"while the acquire of client 1 was in flight (`latency` from 0.200 s)" + grants},
		{"not held any more long before the end of its lease", func(s *synth) {
			s.grantedBefore()
			s.releasing(1000)
			s.add(1010, history.Fail, 2, history.Release, &history.Value{Owner: "c2-1"})
		}, inFlight(), "fault-between", ""},
		{"released after its lease, meanwhile", func(s *synth) {
			s.grantedBefore()
			s.releasing(2080)
			s.add(2150, history.OK, 2, history.Release, &history.Value{Owner: "c2-1"})
		}, inFlight(), "foreign-release", "client 2, after the end of its validity at 2.000 s, released it at 2.080 s, " +
			"with a reply at 2.150 s, and client 0 was granted it at 2.100 s; client 1 got the lock at 2.200 s"},
		{"killed before, and released", func(s *synth) {
			s.grantedBefore()
			s.releasing(600)
			s.add(610, history.OK, 2, history.Release, &history.Value{Owner: "c2-1"})
			s.killed(900)
		}, [2]float64{620, 630}, "fault-between", ""},
		{"one acquire after the other", func(s *synth) { s.grantedBefore(); s.killed(900) }, [2]float64{20, 2150},
			"fault-between", ""},
	}
}

// TestTakenOverTwice: however the hold before the two ended, the cause is that both acquires were in flight then.
func TestTakenOverTwice(t *testing.T) {
	for _, test := range takenOverCases() {
		t.Run(test.name, func(t *testing.T) {
			r := twoGrantsRun(test.held, test.asked).load(t)
			if r.Story.Cause != test.cause || !strings.HasSuffix(r.Story.Sentence, test.text) {
				t.Errorf("cause %s: %s", r.Story.Cause, r.Story.Sentence)
			}
			if test.text != "" {
				checkProofs(t, r)
			}
		})
	}
}
