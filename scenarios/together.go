package scenarios

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// MaxDown is how many servers the faults of s may take down together; -1: any number.
func (s Scenario) MaxDown() int {
	if s.Keep == 0 {
		return -1
	}
	return s.Topology.Defaults().Size() - s.Keep
}

// plannedStep is a listed step with the facts that are known before the run.
type plannedStep struct {
	path     string
	row      faults.Spec
	step     Step
	from, to time.Duration // the earliest injection, the latest healing
}

// never is when a step is healed whose healing is at the end of the run or depends on a trigger.
const never = time.Duration(math.MaxInt64)

// checkTogether looks for faults that cannot be in force at the same time: two that control the same resource, and
// faults that take down servers that the scenario keeps. Targets that only the run can resolve are checked by the run.
func checkTogether(c *mistakes, s Scenario) {
	t := s.Topology.Defaults()
	if t.Validate() != nil {
		return // reported by checkTopology
	}
	if size := t.Size(); s.Keep < 0 || s.Keep > size {
		c.add("$.keep", "keep %d is not between 0 and the %d servers of the topology", s.Keep, size)
		return
	}
	steps := plannedSteps(s)
	for i := range steps {
		if c.full() {
			return
		}
		checkResources(c, t, steps[:i], steps[i])
		checkKept(c, s, steps[:i+1])
	}
}

// plannedSteps are the listed steps without mistakes. Each is armed when the ones before it were injected, so it is not
// injected before them.
func plannedSteps(s Scenario) (all []plannedStep) {
	var from time.Duration
	triggered := false
	for i, step := range s.Faults {
		row, err := faults.Lookup(step.Fault)
		if step.Random != nil || err != nil || row.CheckTarget(step.Target) != nil {
			continue
		}
		from = max(from, step.After)
		triggered = triggered || step.When != ""
		p := plannedStep{path: fmt.Sprintf("$.faults[%d]", i), row: row, step: s.aimed(step), from: from, to: never}
		if step.For > 0 && !triggered {
			p.to = from + step.For
		}
		all = append(all, p)
	}
	return all
}

// checkResources adds a mistake if p needs a resource that an earlier step controls until the end of the run.
func checkResources(c *mistakes, t cluster.Topology, before []plannedStep, p plannedStep) {
	for _, b := range before {
		if b.step.For > 0 || b.row.OneShot {
			continue
		}
		for _, r := range b.row.PlannedResources(b.step.Target, t) {
			if slices.ContainsFunc(p.row.PlannedResources(p.step.Target, t), r.Overlaps) {
				c.add(p.path+".fault", "fault %s: %s is controlled by %s (%s) until the run ends; give %[3]s a duration (for)",
					p.row.Name, r, b.row.Name, b.step.Due())
				return
			}
		}
	}
}

// checkKept adds a mistake if the last of steps may take down more servers than allowed.
func checkKept(c *mistakes, s Scenario, steps []plannedStep) {
	last := steps[len(steps)-1]
	if nodes, others := last.row.NodesDown(last.step.Target); s.Keep == 0 || len(nodes)+others == 0 {
		return
	}
	down := map[string]bool{}
	unknown := 0
	for _, p := range steps {
		if p.to <= last.from {
			continue
		}
		nodes, others := p.row.NodesDown(p.step.Target)
		for _, node := range nodes {
			down[node] = true
		}
		unknown += others
	}
	if n := len(down) + unknown; n > s.MaxDown() {
		c.add(last.path+".fault", "fault %s: with the faults before it, up to %d of %d servers are down at once, and the "+
			"scenario keeps %d (keep)", last.row.Name, n, s.Topology.Defaults().Size(), s.Keep)
	}
}
