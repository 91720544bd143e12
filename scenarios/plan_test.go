package scenarios

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/promise"
)

// checkPlan fails t if p is not a plan of s: in order, before the end of the run, with targets that the run has.
func checkPlan(t *testing.T, s Scenario, p Plan) {
	t.Helper()
	topology := s.Topology.Defaults()
	params := s.Workload.Defaults()
	if !slices.IsSortedFunc(p.Drawn, func(a, b Step) int { return int(a.After - b.After) }) {
		t.Error("the drawn steps are not in order")
	}
	if len(p.All()) != len(p.Steps)+len(p.Drawn) {
		t.Errorf("%d steps and %d drawn are %d", len(p.Steps), len(p.Drawn), len(p.All()))
	}
	for _, step := range p.All() {
		row, err := faults.Lookup(step.Fault)
		if err != nil {
			t.Fatalf("%v: %v", step, err)
		}
		if err := row.CheckTarget(step.Target); err != nil {
			t.Errorf("%v: %v", step, err)
		}
		if why := row.MissingTarget(step.Target, topology, params.Clients); why != "" {
			t.Errorf("%v: %s", step, why)
		}
		if step.After < 0 || step.After >= s.Duration || step.Random != nil || step.String() == "" {
			t.Errorf("%v is not a step of a run of %v", step, s.Duration)
		}
	}
}

func randomScenario(t *testing.T, kind, random string) Scenario {
	t.Helper()
	lock := "reentrant"
	if kind == "quorum" {
		lock = "redlock"
	}
	s, err := Parse([]byte(fmt.Sprintf("name: x\ntopology: {kind: %s}\nlock: %s\nduration: 20s\nworkload: {clients: 3}\n"+
		"faults:\n- {after: 1s, fault: kill}\n- {random: %s}\n- {when: acquired, fault: pause-client}\n",
		kind, lock, random)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSeedDeterminesPlan(t *testing.T) {
	for kind, of := range map[string]string{
		"single": "kill, pause-client, pause-node", "quorum": "kill, pause-node",
		"sentinel": "kill, failover, pause-client, pause-node, replication-hold",
	} {
		s := randomScenario(t, kind, "{of: ["+of+"], every: 500ms}")
		different := false
		targets, names := map[string]bool{}, map[string]bool{}
		for seed := range uint64(50) {
			p := s.Plan(seed)
			checkPlan(t, s, p)
			if diff := cmp.Diff(p, s.Plan(seed)); diff != "" {
				t.Fatalf("seed %d makes two plans:\n%s", seed, diff)
			}
			different = different || seed > 0 && !cmp.Equal(p, s.Plan(seed-1))
			if len(p.Drawn) != 40 || len(p.Steps) != 2 {
				t.Fatalf("%d drawn and %d steps, want 40 and 2", len(p.Drawn), len(p.Steps))
			}
			for i, step := range p.Drawn {
				names[step.Fault], targets[step.Target] = true, true
				const every = 500 * time.Millisecond
				if from := time.Duration(i) * every; step.After < from || step.After >= from+every {
					t.Errorf("step %d is after %v, not in its interval", i, step.After)
				}
				if step.For != 250*time.Millisecond {
					t.Errorf("step %d is healed after %v, want half of every", i, step.For)
				}
			}
		}
		if !different {
			t.Errorf("%s: all seeds make one plan", kind)
		}
		for i := range s.Topology.Defaults().Size() {
			if node := fmt.Sprintf("n%d", i+1); !targets[node] {
				t.Errorf("%s: %s was never a target in 50 plans", kind, node)
			}
		}
		if len(names) < 2 || kind == "single" && (!targets["client:2"] || targets["replica"] || targets["n2"]) {
			t.Errorf("%s: faults %v, targets %v", kind, names, targets)
		}
	}
}

func TestPlanUntilAndFor(t *testing.T) {
	s := randomScenario(t, "single", "{of: [kill], every: 3s, for: 1s, until: 10s}")
	p := s.Plan(7)
	if len(p.Drawn) != 3 {
		t.Errorf("%d drawn in 10 s, want 3: %v", len(p.Drawn), p.Drawn)
	}
	for _, step := range p.Drawn {
		if step.After >= 9*time.Second || step.For != time.Second {
			t.Errorf("%v", step)
		}
	}
}

// TestDrawnLinksExist: servers that are not connected are not drawn as two ends of a link.
func TestDrawnLinksExist(t *testing.T) {
	for _, kind := range []string{"single", "quorum", "sentinel", "cluster"} {
		s := randomScenario(t, kind, "{of: [connection-reset, reply-lost], every: 500ms}")
		for seed := range uint64(50) {
			checkPlan(t, s, s.Plan(seed))
		}
	}
}

// TestRandomStepsAreIndependent: each has a random source of its own.
func TestRandomStepsAreIndependent(t *testing.T) {
	text := "name: x\ntopology: {kind: single}\nlock: reentrant\nduration: 20s\nfaults:\n" +
		"- {random: {of: [kill], every: 2s}}\n- {random: {of: [pause-node], every: 2s}}\n"
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p := s.Plan(3)
	checkPlan(t, s, p)
	at := map[string][]time.Duration{}
	for _, step := range p.Drawn {
		at[step.Fault] = append(at[step.Fault], step.After)
	}
	if len(at["kill"]) != 10 || len(at["pause-node"]) != 10 || cmp.Equal(at["kill"], at["pause-node"]) {
		t.Errorf("drawn at %v", at)
	}
}

func TestStepString(t *testing.T) {
	for want, step := range map[string]Step{
		"after 0s: kill":                     {Fault: "kill"},
		"after 1s: kill n2, healed after 3s": {After: time.Second, Fault: "kill", Target: "n2", For: 3 * time.Second},
		"after 0s: clock-jump n1 by -3s":     {Fault: "clock-jump", Target: "n1", Amount: -3 * time.Second},
		"when acquired: kill master":         {When: "acquired", Fault: "kill", Target: "master"},
		"when lost, not before 500ms: kill":  {When: "lost", After: 500 * time.Millisecond, Fault: "kill"},
		"2s after acquired: kill":            {When: "acquired", Delay: 2 * time.Second, Fault: "kill"},
	} {
		if got := step.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestLockOf: the last clients have the other locks, in the order of the list.
func TestLockOf(t *testing.T) {
	s := Scenario{Lock: "a", Options: map[string]string{"x": "1"}, Locks: []Group{
		{Lock: "b", Options: map[string]string{"x": "2"}, Clients: 2}, {Lock: "c", Clients: 1},
	}}
	var got []string
	for i := range 5 {
		name, options := s.LockOf(i, 5)
		got = append(got, name+options["x"])
	}
	if diff := cmp.Diff([]string{"a1", "a1", "b2", "b2", "c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.LockText() != "a + b + c" {
		t.Errorf("locks %q", s.LockText())
	}
}

// TestForLockRequestsLeases: of a lock that has leases and does not renew them, and none that ends before a hold.
func TestForLockRequestsLeases(t *testing.T) {
	s, err := Load("permits-dead-client")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		can   promise.Set
		lease string
		want  time.Duration
	}{
		{promise.Permits, "5s", 5 * time.Second},
		{promise.Permits, "1500ms", 1800 * time.Millisecond}, // twice the hold
		{promise.Permits, "", 1800 * time.Millisecond},
		{promise.Permits | promise.Watchdog, "1500ms", 0},
		{promise.Permits | promise.Unleased, "1500ms", 0},
	} {
		s.Options = map[string]string{"lease": row.lease}
		got, err := s.ForLock(row.can)
		if err != nil || got.Workload.Lease != row.want || s.Workload.Lease != 0 {
			t.Errorf("%v, lease %q: %v, %v", row.can, row.lease, got.Workload.Lease, err)
		}
	}
}
