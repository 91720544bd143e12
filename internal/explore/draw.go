package explore

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/format"
)

// Drawn is the scenario of one seed.
type Drawn struct {
	Scenario string // YAML
	Name     string // see [Job.Name]
}

// Refusal is a seed that has no scenario.
type Refusal struct {
	Seed   uint64 `json:"seed"`
	Reason string `json:"reason"`
}

// maxRefused is the number of seeds without a scenario that ends an exploration without runs: the flags fit no
// scenario.
const maxRefused = 100

// nextJob alternates between variations of runs that reached a new state, if there are any, and seeds. A seed that has
// no scenario is counted and left out.
func (e *explorer) nextJob(ctx context.Context) (Job, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.next < e.Seeds && e.err == nil && ctx.Err() == nil {
		e.next++
		if len(e.varied) > 0 && e.next%2 == 0 {
			j := e.varied[0]
			e.varied = e.varied[1:]
			e.report.Varied++
			return j, true
		}
		j := e.nextSeed()
		if e.Draw == nil {
			return j, true
		}
		d, err := e.Draw(j.Seed)
		if err == nil {
			j.Scenario, j.Name = d.Scenario, d.Name
			return j, true
		}
		e.refuse(j, err)
	}
	return Job{}, false
}

// nextSeed is the run of the next seed, with the scenario of all seeds.
func (e *explorer) nextSeed() Job {
	n := e.Shard.Covered + e.next - 1 - e.report.Varied
	j := Job{Scenario: e.Scenario, Name: e.Name, Seed: e.First + uint64(n)*max(e.Step, 1), number: n + 1}
	if n%priorityShare == priorityShare-1 && !e.NoVariations {
		j.Variation = 1 // an odd one: by priorities
	}
	return j
}

// refuse counts a seed that has no scenario, because of err. e.mu is held.
func (e *explorer) refuse(j Job, err error) {
	r := &e.report
	e.cover(j)
	if len(r.Refusals) < maxFailures {
		r.Refusals = append(r.Refusals, Refusal{j.Seed, err.Error()})
	}
	if r.Undrawn++; r.Undrawn == e.next && r.Undrawn == min(e.Seeds, maxRefused) {
		e.err = fmt.Errorf("no scenario could be drawn from %s: %w", format.Count(r.Undrawn, "seed"), err)
	}
}

// cover counts the seed of j. e.mu is held.
func (e *explorer) cover(j Job) {
	if j.number > 0 {
		e.done[j.number-1] = true
	}
	for r := &e.report; e.done[r.Covered]; r.Covered++ {
		delete(e.done, r.Covered)
	}
}
