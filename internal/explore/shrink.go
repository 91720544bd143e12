package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Shrunk is a smaller run with the same kind of violation.
type Shrunk struct {
	Scenario scenarios.Scenario `json:"-"`
	YAML     string             `json:"yaml"`
	Kind     Kind               `json:"kind"`
	Run      Result             `json:"run"`   // of Scenario
	Story    []string           `json:"story"` // every step towards it
	Tried    int                `json:"tried"` // runs
}

// ErrNoViolation reports that the run to shrink does not violate the property.
var ErrNoViolation = errors.New("the run shows no such violation")

// Shrink looks for the smallest scenario whose run violates k: fewer faults, clients and keys, a shorter duration, no
// jitter. It is delta debugging (Zeller and Hildebrandt, 2002), which ends when no single reduction that it tries
// preserves the violation. The zero k is the first violation of the run. When ctx ends, Shrink returns the smallest
// run so far with the error. do makes a run, as [Pool.Do] does.
func Shrink(ctx context.Context, do func(context.Context, Job) (Result, error), s scenarios.Scenario, job Job, k Kind,
) (Shrunk, error) {
	s.Faults = listed(s.Plan(job.Seed)) // without random steps, so that removing one leaves the others as they are
	sh := &shrinker{do: do, job: job, best: s}
	first, err := sh.try(ctx, s)
	if err != nil {
		return Shrunk{}, err
	}
	if k == (Kind{}) && len(first.Kinds) > 0 {
		k = first.Kinds[0]
	}
	if first.Failure != "" || k == (Kind{}) || !first.violates(k) {
		return Shrunk{}, fmt.Errorf("%w: %s", ErrNoViolation, cmp.Or(first.Failure, first.Sentence))
	}
	sh.kind, sh.run = k, first
	err = sh.minimize(ctx)
	return Shrunk{
		Scenario: sh.best, YAML: sh.best.YAML(), Kind: k, Run: sh.run, Story: sh.story, Tried: sh.tried,
	}, err
}

// listed is a plan as a list of steps. Drawn steps are inserted at their instants; steps with a trigger keep their
// order.
func listed(p scenarios.Plan) []scenarios.Step {
	steps := slices.Concat(p.Steps, p.Optional)
	for _, d := range p.Drawn {
		at := slices.IndexFunc(steps, func(s scenarios.Step) bool { return s.When == "" && s.After > d.After })
		if at < 0 {
			at = len(steps)
		}
		steps = slices.Insert(steps, at, d)
	}
	return steps
}

type shrinker struct {
	do    func(context.Context, Job) (Result, error)
	job   Job
	kind  Kind
	best  scenarios.Scenario
	run   Result // of best
	story []string
	tried int
}

// try makes the run of s.
func (sh *shrinker) try(ctx context.Context, s scenarios.Scenario) (Result, error) {
	sh.tried++
	j := sh.job
	j.Scenario = s.YAML()
	return sh.do(ctx, j)
}

// accept replaces best with s if its run has the same kind of violation.
func (sh *shrinker) accept(ctx context.Context, s scenarios.Scenario, story string) (bool, error) {
	r, err := sh.try(ctx, s)
	if err != nil || r.Failure != "" || !r.violates(sh.kind) {
		return false, err
	}
	sh.best, sh.run = s, r
	sh.story = append(sh.story, story)
	return true, nil
}

// minimize applies all reductions until none of them is accepted.
func (sh *shrinker) minimize(ctx context.Context) error {
	for {
		before := len(sh.story)
		for _, reduce := range []func(context.Context) error{
			sh.fewerFaults, sh.fewerSequences, sh.fewerClients, sh.fewerKeys, sh.fewerOptions, sh.noJitter, sh.shorter,
			sh.neverHealed,
		} {
			if err := reduce(ctx); err != nil {
				return err
			}
		}
		if len(sh.story) == before {
			return nil
		}
	}
}

// fewerFaults removes halves, then quarters, down to single steps (ddmin).
func (sh *shrinker) fewerFaults(ctx context.Context) error {
	for size := (len(sh.best.Faults) + 1) / 2; size >= 1; size /= 2 {
		for at := 0; at < len(sh.best.Faults); {
			s := sh.best
			end := min(at+size, len(s.Faults))
			removed := s.Faults[at:end]
			s.Faults = slices.Delete(slices.Clone(s.Faults), at, end)
			ok, err := sh.accept(ctx, s, "without "+stepsText(removed))
			if err != nil {
				return err
			}
			if !ok {
				at = end
			}
		}
	}
	return nil
}

// fewerSequences removes sequences of operations from workload mixed: all lists but one, then one name after the other.
func (sh *shrinker) fewerSequences(ctx context.Context) error {
	lists := strings.Split(sh.best.Workload.Sequences, ";")
	for _, list := range lists {
		if len(lists) == 1 {
			break
		}
		s := sh.best
		s.Workload.Sequences = strings.TrimSpace(list)
		ok, err := sh.accept(ctx, s, "the same sequences for all clients: "+s.Workload.Sequences)
		if err != nil {
			return err
		}
		if ok {
			break
		}
	}
	if strings.ContainsRune(sh.best.Workload.Sequences, ';') || strings.HasPrefix(sh.best.Workload.Sequences, "all but") {
		return nil
	}
	for _, name := range sequenceNames(sh.best) {
		left := slices.DeleteFunc(sequenceNames(sh.best), func(n string) bool { return n == name })
		if len(left) == 0 {
			break
		}
		s := sh.best
		s.Workload.Sequences = strings.Join(left, ", ")
		if _, err := sh.accept(ctx, s, "without the sequence "+name); err != nil {
			return err
		}
	}
	return nil
}

// sequenceNames are the names in the only list of sequences of a scenario.
func sequenceNames(s scenarios.Scenario) []string {
	return format.Texts(strings.Split(s.Workload.Sequences, ","), strings.TrimSpace)
}

// fewerOptions removes options of the lock, and the sharing of objects by clients.
func (sh *shrinker) fewerOptions(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(sh.best.Options)) {
		s := sh.best
		s.Options = maps.Clone(s.Options)
		delete(s.Options, name)
		if _, err := sh.accept(ctx, s, "without the option "+name); err != nil {
			return err
		}
	}
	if sh.best.Workload.PerProcess <= 1 {
		return nil
	}
	s := sh.best
	s.Workload.PerProcess, s.Workload.PerInstance = 0, 0
	_, err := sh.accept(ctx, s, "every client in a process of its own")
	return err
}

func stepsText(steps []scenarios.Step) string {
	if len(steps) == 1 {
		return fmt.Sprintf("the fault %s (%s)", steps[0].Fault, steps[0].Due())
	}
	return format.Count(len(steps), "fault")
}

// fewerClients finds the smallest number of clients that is enough.
func (sh *shrinker) fewerClients(ctx context.Context) error {
	clients := sh.best.Workload.Defaults().Clients
	for n := 1; n < clients; n++ {
		s := sh.best
		s.Workload.Clients = n
		ok, err := sh.accept(ctx, s, fmt.Sprintf("%s instead of %d", format.Count(n, "client"), clients))
		if ok || err != nil {
			return err
		}
		if n >= 4 { // most violations need few clients; then from half of them on
			n = max(n, clients/2-1)
		}
	}
	return nil
}

func (sh *shrinker) fewerKeys(ctx context.Context) error {
	keys := sh.best.Workload.Keys
	if keys <= 1 {
		return nil
	}
	for _, n := range []int{1, keys / 2} {
		s := sh.best
		s.Workload.Keys = n
		ok, err := sh.accept(ctx, s, fmt.Sprintf("%s instead of %d", format.Count(n, "key"), keys))
		if ok || err != nil {
			return err
		}
	}
	return nil
}

// noJitter removes jitter and think time from the workload.
func (sh *shrinker) noJitter(ctx context.Context) error {
	if sh.best.Workload.Jitter > 0 {
		s := sh.best
		s.Workload.Jitter = 0
		if _, err := sh.accept(ctx, s, "every critical section of the same length"); err != nil {
			return err
		}
	}
	if sh.best.Workload.Think > 0 {
		s := sh.best
		s.Workload.Think = 0
		if _, err := sh.accept(ctx, s, "no pause between a release and the next acquire"); err != nil {
			return err
		}
	}
	return nil
}

// shortest is the shortest duration that is tried.
const shortest = 100 * time.Millisecond

// shorter halves the duration, then takes off an eighth at a time.
func (sh *shrinker) shorter(ctx context.Context) error {
	for _, part := range []time.Duration{2, 8} {
		for {
			was := sh.best.Duration
			s := sh.best
			s.Duration = (was - was/part).Truncate(time.Millisecond)
			if s.Duration < shortest {
				break
			}
			ok, err := sh.accept(ctx, s, fmt.Sprintf("duration %v instead of %v", s.Duration, was))
			if err != nil {
				return err
			}
			if !ok {
				break
			}
		}
	}
	return nil
}

// neverHealed removes the durations of faults, which then last until the end of the run or, like a crash, are over at
// once: one event less to explain.
func (sh *shrinker) neverHealed(ctx context.Context) error {
	for i, step := range sh.best.Faults {
		if step.For == 0 {
			continue
		}
		s := sh.best
		s.Faults = slices.Clone(s.Faults)
		s.Faults[i].For = 0
		if _, err := sh.accept(ctx, s, fmt.Sprintf("the fault %s without a duration", step.Fault)); err != nil {
			return err
		}
	}
	return nil
}
