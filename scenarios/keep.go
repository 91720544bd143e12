package scenarios

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// MaxDown is how many servers the faults of s may take away together; -1: any number.
func (s Scenario) MaxDown() int {
	if s.Keep == 0 {
		return -1
	}
	return s.Topology.Defaults().Size() - s.Keep
}

// planned is a listed step with what is known of it before the run.
type planned struct {
	path     string
	row      faults.Spec
	step     Step
	from, to time.Duration // the earliest that it may begin, the latest that it may end
}

// never is when a step ends that is healed at the end of the run, or at nobody knows when.
const never = time.Duration(1<<63 - 1)

// checkTogether looks for faults that cannot be in force at the same time: two that control the same resource, and
// those that take down servers that the scenario keeps. Targets that only the run can resolve are checked by the run.
func checkTogether(c *complaints, s Scenario) {
	t := s.Topology.Defaults()
	if t.Validate() != nil {
		return // said elsewhere
	}
	if size := t.Size(); s.Keep < 0 || s.Keep > size {
		c.at("$.keep", "%d servers cannot be kept: the topology has %d", s.Keep, size)
		return
	}
	steps := timetable(s)
	for i := range steps {
		if c.full() {
			return
		}
		checkResources(c, t, steps[:i], steps[i])
		checkKept(c, s, t, steps[:i+1])
	}
}

// timetable is the listed steps that are whole. Each is armed when those above it
// were injected, and so begins no earlier.
func timetable(s Scenario) (all []planned) {
	var from time.Duration
	triggered := false
	for i, step := range s.Faults {
		row, err := faults.Lookup(step.Fault)
		if step.Random != nil || err != nil || row.CheckTarget(step.Target) != nil {
			continue
		}
		from = max(from, step.After)
		triggered = triggered || step.When != ""
		p := planned{path: fmt.Sprintf("$.faults[%d]", i), row: row, step: s.aimed(step), from: from, to: never}
		if step.For > 0 && !triggered {
			p.to = from + step.For
		}
		all = append(all, p)
	}
	return all
}

// checkResources complains if a step needs a resource that an earlier step controls until the end of the run.
func checkResources(c *complaints, t cluster.Topology, before []planned, p planned) {
	for _, b := range before {
		if b.step.For > 0 || b.row.OneShot {
			continue
		}
		for _, g := range b.row.PlannedResources(b.step.Target, t) {
			if slices.ContainsFunc(p.row.PlannedResources(p.step.Target, t), g.Overlaps) {
				c.at(p.path+".fault", "fault %s: %s is controlled by %s (%s) until the run ends; give %[3]s a duration (for)",
					p.row.Name, g, b.row.Name, b.step.Due())
				return
			}
		}
	}
}

// checkKept complains about the last of steps if it may take away more than is spared.
func checkKept(c *complaints, s Scenario, t cluster.Topology, steps []planned) {
	last := steps[len(steps)-1]
	if nodes, others := last.row.NodesDown(last.step.Target); s.Keep == 0 || len(nodes)+others == 0 {
		return
	}
	away := map[string]bool{}
	unknown := 0
	for _, p := range steps {
		if p.to <= last.from {
			continue
		}
		nodes, others := p.row.NodesDown(p.step.Target)
		for _, node := range nodes {
			away[node] = true
		}
		unknown += others
	}
	if n := len(away) + unknown; n > s.MaxDown() {
		c.at(last.path+".fault", "fault %s: with those above it up to %d of %d servers are away at once, and the scenario "+
			"keeps %d of them (keep)", last.row.Name, n, t.Size(), s.Keep)
	}
}
