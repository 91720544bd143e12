package reports

import (
	"fmt"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// synth builds a synthetic run directory, event by event.
type synth struct {
	key     string
	events  []history.Event
	samples []history.Sample
	m       rundir.Manifest
	j       checker.Judgement
}

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func newSynth(scenario, key string, clients int, topology cluster.Topology, nodes int) *synth {
	s := &synth{key: key}
	started := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	s.m = rundir.Manifest{State: rundir.Complete, Scenario: scenario, Seed: 42, Backend: "process",
		Why: "redis-server 7.0.15 is on the PATH", Lock: "mutex", Workload: "mutex", Clients: clients, Keys: []string{key},
		Repeat: "chaos run --scenario " + scenario + " --seed 42", Topology: topology, Started: started,
		Finished: started.Add(8 * time.Second), Expect: map[string]string{},
		Versions: map[string]string{"chaos": "v0.1.0", "go": "go1.26", "redis": "7.0.15"},
		Machine:  map[string]string{"cpus": "2"},
		Phases:   []rundir.Phase{{Name: "start", End: ms(2400)}, {Name: "run", Start: ms(2400), End: ms(8400)}},
		YAML:     "name: " + scenario + "\nlock: mutex\n"}
	for i := range nodes {
		s.m.Nodes = append(s.m.Nodes, cluster.Node{Name: fmt.Sprintf("n%d", i+1),
			Addr: fmt.Sprintf("127.0.2.%d:7001", i+1)})
	}
	return s
}

func (s *synth) add(t float64, typ history.Type, p history.Process, f string, v *history.Value) {
	s.events = append(s.events, history.Event{Time: ms(t), Type: typ, Process: p, F: f, Key: s.key, Value: v})
}

// holdTimes are when a hold was requested, began and ended, and its validity, in milliseconds.
type holdTimes struct{ requested, from, to, valid float64 }

// hold adds an acquire and its release.
func (s *synth) hold(p history.Process, owner string, token uint64, st holdTimes) {
	requested, from, to, valid := st.requested, st.from, st.to, st.valid
	s.add(requested, history.Invoke, p, history.Acquire, &history.Value{Owner: owner})
	s.add(from, history.OK, p, history.Acquire, &history.Value{Owner: owner, Token: token, Valid: ms(valid), Count: 1})
	s.add(to, history.Invoke, p, history.Release, &history.Value{Owner: owner})
	s.add(to+0.4, history.OK, p, history.Release, &history.Value{Owner: owner})
}

func (s *synth) touch(t float64, p history.Process, owner string, token uint64, v history.TouchValue) {
	s.add(t, history.OK, p, history.Touch, &history.Value{Owner: owner, Token: token, Touch: &v})
}

// fault adds an event of a fault, with the words of the catalog, as a run records it.
func (s *synth) fault(t float64, name string, f history.FaultValue) {
	if row, err := faults.Lookup(name); err == nil && f.Phase == history.Injected {
		f.Class, f.Object, f.Verb = row.Class, row.Object, row.Verb
	}
	v := &history.Value{Fault: &f}
	e := history.Event{Time: ms(t), Type: history.Info, Process: history.Nemesis, F: name, Value: v}
	s.events = append(s.events, e)
}

// watch samples a node every 20 ms; a node without a role is down.
func (s *synth) watch(node, role string, from, to float64, holder func(t float64) (string, float64)) {
	for t := from; t < to; t += 20 {
		smp := history.Sample{Time: ms(t), Sent: ms(t - 0.2), Node: node, Up: role != "", Role: role}
		if owner, ttl := holder(t); owner != "" {
			smp.Keys = map[string]history.KeyState{s.key: {Owner: owner, Count: 1, TTL: ms(ttl)}}
		}
		s.samples = append(s.samples, smp)
	}
}

func noHolder(float64) (string, float64) { return "", 0 }

// owned is one owner during [from, to), with a lease that starts at from.
func owned(owner string, from, to, lease float64) func(float64) (string, float64) {
	return func(t float64) (string, float64) {
		if t < from || t >= to {
			return "", 0
		}
		return owner, lease - (t - from)
	}
}

func (s *synth) number() {
	sort.SliceStable(s.events, func(i, k int) bool { return s.events[i].Time < s.events[k].Time })
	for i := range s.events {
		s.events[i].Index = int64(i)
	}
	sort.SliceStable(s.samples, func(i, k int) bool { return s.samples[i].Time < s.samples[k].Time })
}

// find is the index of the first such event.
func (s *synth) find(typ history.Type, p history.Process, f, owner string) int {
	for i, e := range s.events {
		if e.Type == typ && e.Process == p && e.F == f && (owner == "" || e.Value != nil && e.Value.Owner == owner) {
			return i
		}
	}
	return -1
}

// failoverRun: the master dies before its last write reached a replica.
func failoverRun(key string) *synth {
	s := newSynth("failover", key, 5, cluster.Topology{Kind: cluster.Sentinel, Replicas: 2, Sentinels: 3}, 3)
	s.m.Summary, s.m.Source = "the master dies before its last write reached a replica", "Kleppmann 2016"
	s.m.Expect = map[string]string{"verdict": "unsafe", "exclusion": "violated", "lease-exclusion": "violated",
		"fencing": "violated", "damage": "violated", "linearizable": "violated"}
	s.hold(0, "own-0-aaaa", 1, holdTimes{10, 11, 420, 9950})
	s.touch(410, 0, "own-0-aaaa", 1, history.TouchValue{Read: 0, Found: 0})
	s.hold(2, "own-2-bbbb", 2, holdTimes{12, 421, 980, 9950})
	s.touch(970, 2, "own-2-bbbb", 2, history.TouchValue{Read: 1, Found: 1, MaxSeen: 1})
	s.hold(3, "own-3-cccc", 3, holdTimes{13, 1420, 5222, 9950})
	s.hold(1, "own-1-dddd", 3, holdTimes{900, 3390, 6100, 9950})
	s.touch(5210, 3, "own-3-cccc", 3, history.TouchValue{Read: 2, Found: 2, MaxSeen: 2})
	s.touch(6090, 1, "own-1-dddd", 3, history.TouchValue{Read: 2, Found: 3, MaxSeen: 3})
	s.add(950, history.Invoke, 4, history.Acquire, &history.Value{Owner: "own-4-eeee"})
	s.add(1900, history.Info, 4, history.Acquire, nil)
	s.fault(1000, "replication-hold", history.FaultValue{ID: 1, Phase: history.Injected,
		Target: "n1", Detail: "links n2 and n3 to n1"})
	s.fault(1425, "replication-hold", history.FaultValue{ID: 1, Phase: history.TookEffect,
		Target: "n1", Detail: "61 bytes held back"})
	s.fault(1432, "kill", history.FaultValue{ID: 2, Phase: history.Injected, Target: "n1"})
	s.fault(1434, "kill", history.FaultValue{ID: 2, Phase: history.TookEffect, Target: "n1", Detail: "n1 exited"})
	s.fault(6200, "replication-hold", history.FaultValue{ID: 1, Phase: history.Healed, Target: "n1"})
	s.fault(6200, "kill", history.FaultValue{ID: 2, Phase: history.Healed, Target: "n1"})
	first := func(t float64) (string, float64) {
		if t >= 1420 {
			return "own-3-cccc", 10000 - (t - 1420)
		}
		if o, ttl := owned("own-2-bbbb", 421, 980, 10000)(t); o != "" {
			return o, ttl
		}
		return owned("own-0-aaaa", 11, 420, 10000)(t)
	}
	before := func(t float64) (string, float64) {
		if t < 1000 {
			return first(t)
		}
		return "", 0
	}
	s.watch("n1", "master", 0, 1434, first)
	s.watch("n1", "", 1440, 6200, noHolder)
	s.watch("n2", "slave", 0, 2470, before)
	s.watch("n2", "master", 2470, 6200, owned("own-1-dddd", 3390, 6100, 10000))
	s.watch("n3", "slave", 0, 6200, func(t float64) (string, float64) {
		if t < 1000 {
			return first(t)
		}
		return owned("own-1-dddd", 3391, 6101, 10000)(t)
	})
	s.number()
	v := checker.Violation{Rule: "two holds of one lock may not overlap", Text: "client 3 and client 1 held it at once",
		Class: checker.BrokenPromise, Key: key, Clients: []int{3, 1}, Owners: []string{"own-3-cccc", "own-1-dddd"},
		Events: []int{s.find(history.OK, 3, history.Acquire, ""), s.find(history.OK, 1, history.Acquire, ""),
			s.find(history.Invoke, 3, history.Release, "")},
		Start: ms(3390), End: ms(5222), Severity: ms(1832)}
	s.j = checker.Judgement{Verdict: checker.Unsafe, Class: checker.BrokenPromise,
		Sentence: "two clients held the lock for 1.83 s", Results: []checker.Result{
			{Property: checker.Exclusion, Outcome: checker.Violated, Summary: "1 overlap", Total: 1,
				Violations: []checker.Violation{v}, Counts: map[string]int64{"holds": 4}},
			{Property: checker.LeaseExclusion, Outcome: checker.Violated, Summary: "1 overlap inside the validity", Total: 1,
				Violations: []checker.Violation{v}},
			{Property: checker.Fencing, Outcome: checker.Violated, Summary: "token 3 was granted twice", Total: 1,
				Violations: []checker.Violation{{Rule: "tokens grow", Text: "token 3 was granted twice", Key: key,
					Clients: []int{3, 1}, Events: v.Events[:2], Start: ms(3390), End: ms(3390)}}},
			{Property: checker.Damage, Outcome: checker.Violated, Summary: "1 lost update", Total: 1,
				Violations: []checker.Violation{{Rule: "no update is lost", Text: "client 1 read 2 and found 3", Key: key,
					Clients: []int{1}, Events: []int{s.find(history.OK, 1, history.Touch, "")}, Start: ms(6090), End: ms(6090)}}},
			{Property: checker.Linearizable, Outcome: checker.Violated, Summary: "no order explains the history", Total: 1},
			{Property: checker.Exercised, Outcome: checker.Holds, Summary: "both faults took effect while the lock was held"},
		}}
	return s
}
