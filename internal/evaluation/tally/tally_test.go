package tally

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/scenarios"
)

func lockNamed(t *testing.T, name string, can promise.Set) generator.Lock {
	t.Helper()
	l, err := generator.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if can != 0 {
		l.Can = can
	}
	return l
}

// onServers is a program on so many servers of the user.
func onServers(nodes int) generator.Lock {
	return generator.Lock{Spec: client.Spec{Name: "exec:./lock", Can: promise.Try}, Kinds: []string{cluster.Command},
		Servers: &cluster.Topology{Kind: cluster.Command, Nodes: nodes, Run: "server {port.client} {peers.peer}"}}
}

// withoutServers is a program that brings its own.
func withoutServers(t *testing.T) generator.Lock {
	t.Helper()
	l := lockNamed(t, "exec:./lock", promise.Try)
	if err := l.On([]string{cluster.None}); err != nil {
		t.Fatal(err)
	}
	return l
}

func names(list []scenarios.Scenario) (all []string) {
	for _, s := range list {
		all = append(all, s.Name)
	}
	return all
}

// TestPlan: a lock gets the stories that its promises and topologies allow, and the reason why it does not get others.
func TestPlan(t *testing.T) {
	const program = "exec:./lock"
	for _, test := range []struct {
		name          string
		lock          generator.Lock
		has, hasNot   []string
		why, whyNames string
	}{
		{"a program", lockNamed(t, program, promise.Try), []string{"contention", "gc-pause", "mixed"},
			[]string{"failover", "redlock-contention", "thundering-herd"}, "topology sentinel", "failover"},
		{"a semaphore", lockNamed(t, program, promise.Permits), []string{"permits-dead-client"}, []string{"latch"},
			"workload latch needs a lock that promises latch: state it", "latch"},
		{"no semaphore", lockNamed(t, program, promise.Try), nil, []string{"permits-dead-client"},
			"workload semaphore needs a lock that promises permits: state it", "permits-dead-client"},
		{"a quorum", lockNamed(t, "redlock", 0), []string{"redlock-contention"}, []string{"contention"}, "topology single",
			"contention"},
		{"a server of your own", onServers(1), []string{"server-down", "power-loss-single", "gc-pause"},
			[]string{"zk-rolling-restart"}, "fault memory-full: it acts on a memory limit, which only Redis " +
				"servers have here, and this is topology command", "memory-full"},
		{"no servers", withoutServers(t), []string{"gc-pause", "contention"}, []string{"server-down"},
			"fault kill: it acts on servers or on connections to them, and this is topology none", "server-down"},
		{"three of them", onServers(3), []string{"gc-pause", "zk-rolling-restart"}, []string{"failover"},
			"fault kill: target master needs topology.role, a program that prints the role of a server; or name a server, " +
				"such as n1", "zk-failover"},
	} {
		t.Run(test.name, func(t *testing.T) {
			list, unfit := Plan(test.lock)
			got := names(list)
			for _, name := range test.has {
				if !slices.Contains(got, name) {
					t.Errorf("%s is not planned: %v", name, got)
				}
			}
			for _, name := range test.hasNot {
				if slices.Contains(got, name) {
					t.Errorf("%s is planned", name)
				}
			}
			if !slices.Contains(unfit[test.why], test.whyNames) {
				t.Errorf("%s is not among those that do not fit because of %q: %v", test.whyNames, test.why, unfit)
			}
		})
	}
}

// TestPlanAlone: a client that is alone in its process gets no scenario that needs several in one, drawn or not.
func TestPlanAlone(t *testing.T) {
	l := lockNamed(t, "exec:./lock", promise.Try)
	several := func(list []scenarios.Scenario) bool {
		return slices.ContainsFunc(list, func(s scenarios.Scenario) bool {
			return s.Workload.PerProcess > 1 || s.Workload.PerInstance > 1
		})
	}
	if list, _ := Plan(l); !several(list) {
		t.Error("no story has several clients in one process: the test shows nothing")
	}
	l.Alone = true
	if list, _ := Plan(l); several(list) {
		t.Error("a story with several clients in one process is planned")
	}
	for seed := range uint64(100) {
		if s, err := l.Draw(seed); err != nil || several([]scenarios.Scenario{s}) {
			t.Fatalf("seed %d: %v, %+v", seed, err, s.Workload)
		}
	}
}

// TestPlanCoversFirst: each of the first scenarios has a fault or a workload that none before it has.
func TestPlanCoversFirst(t *testing.T) {
	list, _ := Plan(lockNamed(t, "reentrant", 0))
	covered := map[string]bool{}
	for _, s := range list[:20] {
		adds := false
		for _, f := range features(s) {
			adds = adds || !covered[f]
			covered[f] = true
		}
		if !adds {
			t.Errorf("%s adds nothing to the scenarios before it", s.Name)
		}
	}
}

// TestSameCause: findings of one cause are one, findings of an unknown cause differ by their properties, and the runs
// of an exploration, which reports each rule that they violate, count once.
func TestSameCause(t *testing.T) {
	tests := map[string]*Tally{}
	add := func(name string, list ...Finding) {
		tt := New(nil)
		for _, f := range list {
			tt.runsOf[f.Scenario]++
			tt.addFinding(f)
		}
		tt.SumUp()
		tests[name] = tt
	}
	f := func(own bool, cause string, p checker.Property, scenario string) Finding {
		return Finding{Own: own, Cause: cause, Property: p, Scenario: scenario, Runs: 1,
			in: map[runID]bool{{scenario: scenario}: true}}
	}
	add("one cause", f(true, "stolen", checker.Exclusion, "a"), f(true, "stolen", checker.Honesty, "b"))
	add("unknown", f(true, "unknown", checker.Exclusion, "a"), f(true, "unknown", checker.Recovery, "b"))
	add("own and common", f(false, "stolen", checker.Exclusion, "a"), f(true, "stolen", checker.Exclusion, "b"))
	add("one run", f(true, "stolen", checker.Exclusion, "a"), f(true, "stolen", checker.Honesty, "a"))
	add("common", f(false, "lost-in-failover", checker.Exclusion, "a"))
	for name, want := range map[string]int{"one cause": 1, "unknown": 2, "own and common": 1, "common": 1} {
		r := tests[name].Result
		if len(r.Findings) != want {
			t.Errorf("%s: %d findings, want %d", name, len(r.Findings), want)
		}
		if own := len(r.Own()) > 0; own != (name != "common") {
			t.Errorf("%s: of the lock itself: %t", name, own)
		}
	}
	if f := tests["own and common"].Findings[0]; f.Runs != 2 || !slices.Equal(f.Seen, []Seen{{"b", 1, 1}, {"a", 1, 1}}) {
		t.Errorf("own and common: %+v", f)
	}
	for _, f := range tests["unknown"].Findings {
		if f.Change() == "" {
			t.Errorf("no advice although the property is known: %+v", f)
		}
	}
	if f := tests["one run"].Findings[0]; f.Runs != 1 {
		t.Errorf("two findings of one run: %d runs", f.Runs)
	}
	explored := New(nil)
	explored.AddRuns(Runs{All: 50, Generated: 50}, 0)
	for _, runs := range []int{7, 9} {
		explored.AddExplored(Finding{Own: true, Property: checker.Exclusion, Scenario: generator.Name(3), Runs: runs}, "")
	}
	explored.SumUp()
	if f := explored.Findings[0]; f.Runs != 9 || f.Of != 50 {
		t.Errorf("explored: in %d of %d runs, want 9 of 50", f.Runs, f.Of)
	}
}

// TestNotStated: promises that a lock keeps and does not state come first.
func TestNotStated(t *testing.T) {
	tt := New(map[string][]string{"topology sentinel": {"failover"}})
	tt.SumUp()
	tt.AddNotStated(promise.Try, promise.Watchdog, "the reply")
	all := tt.NotTested
	if first := all[0]; first.Subject != "promise watchdog" || first.Needs != `"watchdog" in the reply` {
		t.Errorf("the first one is %+v", first)
	}
	last := all[len(all)-1].Subject
	if !strings.Contains(last, "fair") || strings.Contains(last, "watchdog") || strings.Contains(last, "try") {
		t.Error(last)
	}
}

// TestSeen: a generated scenario that ran several times is counted alone, the others together, and the scenario of the
// example comes first.
func TestSeen(t *testing.T) {
	tt := New(nil)
	again, other := generator.Name(3), generator.Name(4)
	for scenario, n := range map[string]int{again: 5, other: 1, generator.Name(5): 1, "mixed": 1} {
		tt.runsOf[scenario], tt.Runs.All = n, tt.Runs.All+n
	}
	tt.AddRuns(Runs{All: 10, Generated: 10}, 0) // of an exploration
	tt.addFinding(Finding{Own: true, Cause: "stolen", Scenario: again, Runs: 4, explored: 1, in: map[runID]bool{
		{again, 1}: true, {again, 2}: true, {other, 1}: true, {"mixed", 1}: true,
	}})
	tt.SumUp()
	f := tt.Findings[0]
	if want := []Seen{{again, 2, 5}, {Generated, 2, 12}, {"mixed", 1, 1}}; !slices.Equal(f.Seen, want) || f.Of != 18 {
		t.Errorf("seen in %+v of %d runs, want %+v of 18", f.Seen, f.Of, want)
	}
	f.Runs = 5
	if got := f.Frequency(); got != "in 2 of 5 runs of generated-3, and in 3 of the 13 others" {
		t.Error(got)
	}
}

// TestChange: the first advice of a finding is a change, although a run lists measured facts before it; a fact alone is
// none.
func TestChange(t *testing.T) {
	change, fact := Advice{Text: "Compare `first`."}, Advice{Measured: true, Text: "A twin was safe."}
	tt := New(nil)
	tt.addFinding(Finding{Own: true, Cause: "stolen", Runs: 1, Scenario: "mixed", Advice: []Advice{fact, change}})
	tt.addFinding(Finding{Own: true, Cause: "wake-up", Runs: 1, Scenario: "mixed", Advice: []Advice{fact}})
	tt.SumUp()
	if f := tt.Findings[0]; !slices.Equal(f.Advice, []Advice{change, fact}) || f.Change() != "Compare first." {
		t.Errorf("advice %+v, change %q", f.Advice, f.Change())
	}
	if got := tt.Findings[1].Change(); got != "" {
		t.Errorf("a measured fact is the change %q", got)
	}
}

// TestOutlivesLease: a client that outlived its lease is no finding of the lock, unless the lock did more than that.
func TestOutlivesLease(t *testing.T) {
	for f, want := range map[[2]string]bool{
		{string(checker.OutlivedLease), "outlived-lease"}:  true,
		{string(checker.OutlivedLease), "unknown"}:         true,
		{string(checker.OutlivedLease), "foreign-release"}: false,
		{string(checker.BrokenPromise), "outlived-lease"}:  false,
		{"", "unknown"}: false,
	} {
		if got := (Finding{Class: checker.Class(f[0]), Cause: f[1]}).outlivesLease(); got != want {
			t.Errorf("%v: %t, want %t", f, got, want)
		}
	}
}

// TestExample: of the runs with one cause, the one with the simplest scenario is shown.
func TestExample(t *testing.T) {
	tt := New(nil)
	in := func(scenario string) map[runID]bool { return map[runID]bool{{scenario: scenario}: true} }
	for _, f := range []Finding{
		{Own: true, Cause: "stolen", Runs: 1, in: in("hard"), Scenario: "hard", Sentence: "hard", weight: 20},
		{Own: true, Cause: "stolen", Runs: 1, in: in("easy"), Scenario: "easy", Sentence: "easy", weight: 4},
		{Own: true, Cause: "stolen", Runs: 1, in: in("middle"), Scenario: "middle", Sentence: "middle", weight: 9},
	} {
		tt.addFinding(f)
	}
	if f := tt.Findings[0]; f.Sentence != "easy" || f.Runs != 3 || f.Scenario != "easy" {
		t.Errorf("%+v", f)
	}
}

// TestNotSurvived: a lock need not survive a fault against which it promises nothing, unless it promises to keep its
// grants.
func TestNotSurvived(t *testing.T) {
	for _, test := range []struct {
		scenario string
		can      promise.Set
		want     string // the fault
	}{
		{"gc-pause", promise.Try, ""},
		{"failover", promise.Try, "replication-hold"},
		{"failover", promise.KeepsGrants | promise.AwaitsReplicas, ""},
		{"resent-acquire", promise.Try, "request-resent"},
		{"resent-acquire", promise.RetriesTransientErrors, ""},
		{"power-loss-single", promise.Try, "power-loss"},
		{"redlock-always", promise.Try, ""},
		{"eviction", promise.Try, "eviction"},
		{"clock-drift", promise.Try, "clock-drift"},
		{"silent-connections", promise.Try, "silent-connections"},
	} {
		s, err := scenarios.Load(test.scenario)
		if err != nil {
			t.Fatal(err)
		}
		if fault, why := generator.NotSurvived(s, test.can); fault != test.want || (why == "") != (fault == "") {
			t.Errorf("%s with %v: %q (%s), want %q", test.scenario, test.can, fault, why, test.want)
		}
	}
	s, err := scenarios.Load("silent-connections")
	if err != nil {
		t.Fatal(err)
	}
	s.Faults[0].For = 0
	if fault, why := generator.NotSurvived(s, promise.Try); fault != "" {
		t.Errorf("connections are silent until the end, and a lock need not survive that: %s, %s", fault, why)
	}
}

// TestUndecided: runs that decided nothing come first under "not tested", with the first reason.
func TestUndecided(t *testing.T) {
	tt := New(map[string][]string{"topology sentinel": {"failover"}})
	for _, name := range []string{"mixed", "latency", "mixed"} {
		run := &evidence.Run{}
		run.Manifest.Scenario = name
		run.Judgement = checker.Judgement{Verdict: checker.Inconclusive, Sentence: "too little of " + name + "; and more"}
		tt.Add(run)
	}
	tt.Failed("failover", "the disk is full; and more")
	tt.SumUp()
	var got []string
	for _, n := range tt.NotTested {
		got = append(got, n.Line())
	}
	want := []string{
		"1 failed run: failover: the first one: the disk is full",
		"3 inconclusive runs: mixed, latency: the first one: too little of mixed",
		"1 scenario: failover: topology sentinel (needs --topology sentinel)",
	}
	if !slices.Equal(got, want) || tt.Runs != (Runs{All: 4, Inconclusive: 3, Failed: 1}) {
		t.Errorf("got %q, want %q; %+v", got, want, tt.Runs)
	}
}
