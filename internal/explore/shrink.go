package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/scenarios"
)

// Shrunk is a smaller run that violates the same.
type Shrunk struct {
	Scenario scenarios.Scenario `json:"-"`
	YAML     string             `json:"yaml"`
	Kind     Kind               `json:"kind"`
	Answer   Answer             `json:"answer"` // of the smallest run
	Story    []string           `json:"story"`  // what was left out, and what could not be, a sentence each
	Tried    int                `json:"tried"`  // runs
}

// ErrNoViolation says that the run to be made smaller violates nothing, or not that.
var ErrNoViolation = errors.New("the run shows no such violation")

// Shrink makes the run of s with that seed smaller for as long as it violates k:
// fewer faults, clients and keys, a shorter time, no chance in durations. The
// search is that of Zeller and Hildebrandt's delta debugging (2002), which ends
// where no single thing that it tries can be left out. k's zero value means the first violation
// of the run. When ctx ends, the smallest run so far is returned with its error.
func Shrink(ctx context.Context, pool *Pool, s scenarios.Scenario, job Job, k Kind) (Shrunk, error) {
	// The plan is written out, so that a step can be left out without drawing the others anew.
	s.Faults = written(s.Plan(job.Seed))
	sh := &shrinker{pool: pool, job: job, best: s}
	first, err := sh.try(ctx, s)
	if err != nil {
		return Shrunk{}, err
	}
	if k == (Kind{}) && len(first.Kinds) > 0 {
		k = first.Kinds[0]
	}
	if first.Failure != "" || k == (Kind{}) || !first.Violates(k) {
		return Shrunk{}, fmt.Errorf("%w: %s", ErrNoViolation, cmp.Or(first.Failure, first.Sentence))
	}
	sh.kind, sh.answer = k, first
	err = sh.all(ctx)
	return Shrunk{
		Scenario: sh.best, YAML: sh.best.YAML(), Kind: k, Answer: sh.answer, Story: sh.story, Tried: sh.tried,
	}, err
}

// written is a plan as a list of steps: drawn ones have their instants, so the
// order of the list is that of the instants, and steps that wait for a trigger stay where they are.
func written(p scenarios.Plan) []scenarios.Step {
	steps := slices.Clone(p.Steps)
	for _, d := range p.Drawn {
		at := len(steps)
		for i, s := range steps {
			if s.When == "" && s.After > d.After {
				at = i
				break
			}
		}
		steps = slices.Insert(steps, at, d)
	}
	return steps
}

type shrinker struct {
	pool   *Pool
	job    Job
	kind   Kind
	best   scenarios.Scenario
	answer Answer
	story  []string
	tried  int
}

// try makes the run of s.
func (sh *shrinker) try(ctx context.Context, s scenarios.Scenario) (Answer, error) {
	sh.tried++
	j := sh.job
	j.Scenario = s.YAML()
	return sh.pool.Do(ctx, j)
}

// better takes s if its run violates the same.
func (sh *shrinker) better(ctx context.Context, s scenarios.Scenario, told string) (bool, error) {
	a, err := sh.try(ctx, s)
	if err != nil || a.Failure != "" || !a.Violates(sh.kind) {
		return false, err
	}
	sh.best, sh.answer = s, a
	sh.story = append(sh.story, told)
	return true, nil
}

// all goes through everything that can be left out until nothing more can be.
func (sh *shrinker) all(ctx context.Context) error {
	for {
		before := len(sh.story)
		for _, less := range []func(context.Context) error{
			sh.fewerFaults, sh.fewerClients, sh.fewerKeys, sh.lessChance, sh.shorter, sh.neverHealed,
		} {
			if err := less(ctx); err != nil {
				return err
			}
		}
		if len(sh.story) == before {
			return nil
		}
	}
}

// fewerFaults leaves out halves, then quarters, down to single steps (ddmin).
func (sh *shrinker) fewerFaults(ctx context.Context) error {
	for size := (len(sh.best.Faults) + 1) / 2; size >= 1; size /= 2 {
		for at := 0; at < len(sh.best.Faults); {
			s := sh.best
			end := min(at+size, len(s.Faults))
			gone := s.Faults[at:end]
			s.Faults = slices.Delete(slices.Clone(s.Faults), at, end)
			took, err := sh.better(ctx, s, "without "+list(gone))
			if err != nil {
				return err
			}
			if !took {
				at = end
			}
		}
	}
	return nil
}

func list(steps []scenarios.Step) string {
	if len(steps) == 1 {
		return fmt.Sprintf("the fault %s (%s)", steps[0].Fault, steps[0].Due())
	}
	return fmt.Sprintf("%d faults", len(steps))
}

// fewerClients finds the smallest number of clients that is enough.
func (sh *shrinker) fewerClients(ctx context.Context) error {
	p := sh.best.Workload.Defaults()
	for n := 1; n < p.Clients; n++ {
		s := sh.best
		s.Workload.Clients = n
		took, err := sh.better(ctx, s, fmt.Sprintf("%d clients instead of %d", n, p.Clients))
		if took || err != nil {
			return err
		}
		if n >= 4 { // the interesting ones are small; then by halves
			n = max(n, p.Clients/2-1)
		}
	}
	return nil
}

func (sh *shrinker) fewerKeys(ctx context.Context) error {
	if sh.best.Workload.Keys <= 1 {
		return nil
	}
	for _, n := range []int{1, sh.best.Workload.Keys / 2} {
		s := sh.best
		s.Workload.Keys = n
		took, err := sh.better(ctx, s, fmt.Sprintf("%d keys instead of %d", n, sh.best.Workload.Keys))
		if took || err != nil {
			return err
		}
	}
	return nil
}

// lessChance takes jitter and thinking out of the workload.
func (sh *shrinker) lessChance(ctx context.Context) error {
	if sh.best.Workload.Jitter > 0 {
		s := sh.best
		s.Workload.Jitter = 0
		if _, err := sh.better(ctx, s, "every critical section of the same length"); err != nil {
			return err
		}
	}
	if sh.best.Workload.Think > 0 {
		s := sh.best
		s.Workload.Think = 0
		if _, err := sh.better(ctx, s, "no pause between a release and the next acquire"); err != nil {
			return err
		}
	}
	return nil
}

// shortest is the shortest run that is tried.
const shortest = 100 * time.Millisecond

// shorter halves the time, then takes off an eighth at a time.
func (sh *shrinker) shorter(ctx context.Context) error {
	for _, part := range []time.Duration{2, 8} {
		for {
			was := sh.best.Duration
			s := sh.best
			s.Duration = (was - was/part).Truncate(time.Millisecond)
			if s.Duration < shortest {
				break
			}
			took, err := sh.better(ctx, s, fmt.Sprintf("%v instead of %v", s.Duration, was))
			if err != nil {
				return err
			}
			if !took {
				break
			}
		}
	}
	return nil
}

// neverHealed lets faults last until the end of the run, which is one instant
// less to explain, if that shows the same.
func (sh *shrinker) neverHealed(ctx context.Context) error {
	for i, step := range sh.best.Faults {
		if step.For == 0 {
			continue
		}
		s := sh.best
		s.Faults = slices.Clone(s.Faults)
		s.Faults[i].For = 0
		if _, err := sh.better(ctx, s, fmt.Sprintf("the fault %s stays until the end", step.Fault)); err != nil {
			return err
		}
	}
	return nil
}
