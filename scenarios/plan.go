package scenarios

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads"
)

// Variation is a run with the plan of its seed and everything else drawn differently; 0 is the run of the seed itself.
// Odd variations deliver simulated messages by random priorities instead of by latency.
type Variation uint64

// Priorities reports whether messages are delivered by priorities.
func (v Variation) Priorities() bool { return v%2 == 1 }

// Seed is the seed of everything but the plan.
func (v Variation) Seed(seed uint64) uint64 {
	return seed ^ uint64(v)*0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
}

// Plan is the faults of a run, with every random choice made.
type Plan struct {
	Steps []Step // in the order of the scenario; each is armed when the earlier ones were injected
	Drawn []Step // random steps, ordered by their instants; each is armed from the start
	// Optional steps are as the scenario lists them; each is armed from the start.
	Optional []Step
}

// Plan makes the random choices of s. The same seed makes the same plan.
func (s Scenario) Plan(seed uint64) Plan {
	var plan Plan
	for i, step := range s.Faults {
		switch {
		case step.Random != nil:
			plan.Drawn = append(plan.Drawn, s.draw(*step.Random, rand.New(rand.NewPCG(seed, uint64(i)+1)))...)
		case step.Optional:
			plan.Optional = append(plan.Optional, s.aimed(step))
		default:
			plan.Steps = append(plan.Steps, s.aimed(step))
		}
	}
	slices.SortStableFunc(plan.Drawn, func(a, b Step) int { return cmp.Compare(a.After, b.After) })
	return plan
}

// aimed is step with its target as far as it is known before the run.
func (s Scenario) aimed(step Step) Step {
	if row, err := faults.Lookup(step.Fault); err == nil {
		step.Target = row.PlannedTarget(step.Target, s.Topology.Defaults())
	}
	return step
}

func (s Scenario) draw(want Random, r *rand.Rand) []Step {
	until, healAfter := cmp.Or(want.Until, s.Duration), cmp.Or(want.For, want.Every/2)
	of := s.effective(want.Of)
	var steps []Step
	for start := time.Duration(0); len(of) > 0 && start+want.Every <= until; start += want.Every {
		name := of[r.IntN(len(of))]
		steps = append(steps, s.aimed(Step{
			After: start + time.Duration(r.Int64N(int64(want.Every))), Fault: name, For: healAfter,
			Target: s.DrawTarget(name, r), Most: want.Most,
		}))
	}
	return steps
}

// needed are the promises that a lock must have for a fault to have an effect on it.
func needed(fault string) promise.Set {
	switch fault {
	case "pubsub-cut", "message-lost", "subscribe-refused", "channel-refused":
		return promise.Wakes
	case "script-flush":
		return promise.Scripts
	}
	return 0
}

// effective are the faults of a list that can have an effect on the lock. What a program of the user does is not
// known.
func (s Scenario) effective(of []string) []string {
	for _, name := range s.LockNames() {
		row, err := adapters.Lookup(name)
		if err != nil || strings.HasPrefix(name, client.ExecPrefix) {
			return of
		}
		of = effectiveOn(row.Can, of)
	}
	return of
}

func effectiveOn(can promise.Set, of []string) []string {
	return slices.DeleteFunc(slices.Clone(of), func(fault string) bool { return !can.Has(needed(fault)) })
}

// ForLock is s for a lock from outside the catalog: it draws no fault that cannot have an effect on it, and requests a
// lease of a lock that has leases and renews none by itself. It is an error if the lock cannot do the operations of the
// workload.
func (s Scenario) ForLock(can promise.Set) (Scenario, error) {
	workload, err := workloads.Lookup(s.Workload.Defaults().Kind)
	if err != nil {
		return s, err
	}
	if missing := workload.Needs.Without(can); missing != 0 {
		return s, fmt.Errorf("workload %s needs a lock that promises %v: state it", workload.Name, missing)
	}
	if p := &s.Workload; p.Lease == 0 && !can.Has(promise.Watchdog) && !can.Has(promise.Unleased) {
		p.Lease = max(s.OptionLease(), 2*(p.Defaults().Hold+p.Jitter)) // no holder is to outlive it
	}
	s.Faults = slices.Clone(s.Faults)
	for i := range s.Faults {
		if r := s.Faults[i].Random; r != nil {
			drawn := *r
			drawn.Of = effectiveOn(can, r.Of)
			s.Faults[i].Random = &drawn
		}
	}
	return s, nil
}

// OptionLease is the lease in the options of the scenario's lock, which the lock renews; 0: none.
func (s Scenario) OptionLease() time.Duration {
	lease, err := time.ParseDuration(s.Options["lease"])
	if err != nil {
		return 0
	}
	return lease
}

// DrawTarget draws one of the fault's kinds of target, and where that is a node or a client, which one.
func (s Scenario) DrawTarget(name string, r *rand.Rand) string {
	row, err := faults.Lookup(name)
	if err != nil {
		return ""
	}
	t := s.Topology.Defaults()
	p := s.Workload.Defaults()
	const link = faults.Replica + ">" + faults.Master // the only two servers that are connected in every topology
	targets := slices.DeleteFunc(slices.Clone(row.Targets), func(word faults.Target) bool {
		if word == faults.Servers {
			word = link
		}
		return word == faults.Watch || row.MissingTarget(string(word), t, p.Clients) != ""
	})
	if len(targets) == 0 {
		return ""
	}
	node := func() string { return fmt.Sprintf("n%d", 1+r.IntN(t.Size())) }
	switch target := targets[r.IntN(len(targets))]; target {
	case faults.Node, faults.Nodes:
		return node()
	case faults.Client:
		return fmt.Sprintf("client:%d", r.IntN(p.Clients))
	case faults.Pair:
		return fmt.Sprintf("client:%d>%s", r.IntN(p.Clients), node())
	case faults.Servers:
		return string(link)
	default:
		return string(target)
	}
}

// Requirements are the requirements of the faults of s.
func (s Scenario) Requirements() (all cluster.Requirements) {
	for _, step := range s.Faults {
		names := []string{step.Fault}
		if step.Random != nil {
			names = step.Random.Of
		}
		for _, name := range names {
			if row, err := faults.Lookup(name); err == nil {
				all.Add(row.Requires)
			}
		}
	}
	return all
}

// All are the listed, the optional and the random steps.
func (p Plan) All() []Step { return slices.Concat(p.Steps, p.Optional, p.Drawn) }

// Restarts reports whether p may start a client again that was killed.
func (p Plan) Restarts() bool {
	return slices.ContainsFunc(p.All(), func(s Step) bool { return s.Fault == clientRestart })
}

// String is the step for people: "when acquired, not before 500ms: kill master, healed after 3s".
func (s Step) String() string {
	text := fmt.Sprintf("%s: %s", s.Due(), s.Fault)
	if s.Target != "" {
		text += " " + s.Target
	}
	if s.Amount != 0 {
		text += fmt.Sprintf(" by %v", s.Amount)
	}
	if s.Hits != "" {
		text += ", must hit a request to " + s.Hits
	}
	if s.For > 0 {
		text += fmt.Sprintf(", healed after %v", s.For)
	}
	return text
}

// Due is when the step is injected, for people.
func (s Step) Due() string {
	if s.When == "" {
		return fmt.Sprintf("after %v", s.After)
	}
	text := "when " + s.When
	if s.Delay > 0 {
		text = fmt.Sprintf("%v after %s", s.Delay, s.When)
	}
	if s.After > 0 {
		text += fmt.Sprintf(", not before %v", s.After)
	}
	return text
}
