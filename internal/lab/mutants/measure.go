package mutants

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/explore"
)

// Result has the findings of the exploration of one row.
type Result struct {
	Name      string           `json:"name"`
	Convicted bool             `json:"convicted"`
	By        Target           `json:"by,omitzero"` // the target that convicted it
	Seed      uint64           `json:"seed,omitempty"`
	Property  checker.Property `json:"property,omitempty"`
	Rule      string           `json:"rule,omitempty"`
	Sentence  string           `json:"sentence,omitempty"`
	Runs      int              `json:"runs"`
	CPU       time.Duration    `json:"cpu_ns"`              // of the runs, up to the conviction
	Failed    int              `json:"failed,omitempty"`    // runs that could not be completed
	Failure   string           `json:"failure,omitempty"`   // of the first of them
	Undecided int              `json:"undecided,omitempty"` // inconclusive runs
}

// Measurer explores rows.
type Measurer struct {
	Programs *Programs
	Targets  Targets
	Budget   time.Duration // processor time for each row
	First    uint64        // seed of the first run in each scenario
	Note     func(format string, args ...any)

	mu       sync.Mutex
	baseline map[string]baseline // by target
}

// baseline explores a target with the lock as it is, once, and returns the violated properties.
type baseline func() (map[checker.Property]bool, error)

// baselineSeeds is the number of runs of the lock without a planted bug.
const baselineSeeds = 8

// firstSeeds is the smallest number of seeds of a scenario that, according to its row, reaches its code.
const firstSeeds = 16

// Measure explores the targets of r in rounds, with more seeds in each, until one convicts it or the budget is spent.
func (m *Measurer) Measure(ctx context.Context, r Row) (Result, error) {
	out := Result{Name: r.Name}
	targets := m.Targets.Of(r)
	of, err := m.open(ctx, r)
	if err != nil {
		return out, err
	}
	defer of.pool.Close()
	next := m.First
	for seeds := 1; ; seeds = min(2*seeds, 16) {
		ran := false
		for _, t := range targets {
			if ran = true; m.spent(t, out) {
				return out, nil
			}
			first, n := next, seeds
			if rank(r.First, t) < len(r.First) {
				first, n = m.First+firstSeeds*(next-m.First), max(seeds, firstSeeds)
			}
			if t.OnServers() {
				n = min(n, serverSeeds)
			}
			if err := m.explore(ctx, of, t, first, n, &out); err != nil || out.Convicted {
				return out, err
			}
		}
		if next += uint64(seeds); !ran { // no scenario reaches it
			return out, nil
		}
	}
}

// spent reports whether out has used up what a row may use.
func (m *Measurer) spent(t Target, out Result) bool {
	if t.OnServers() {
		return out.Runs >= serverRuns
	}
	return out.CPU >= m.Budget
}

func (m *Measurer) open(ctx context.Context, r Row) (p program, err error) {
	if p.path, p.env, err = m.Programs.Command(ctx, r); err == nil {
		p.pool, err = explore.Open([]string{p.path, "worker"}, 1, p.env)
	}
	return p, err
}

// explore makes runs of t, as chaos explore does, and adds their results to out.
func (m *Measurer) explore(
	ctx context.Context, of program, t Target, first uint64, seeds int, out *Result,
) error {
	known := m.known(t)
	limit := wallFactor * m.Budget
	if t.OnServers() {
		limit = time.Duration(seeds) * serverTime
	}
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	var report explore.Report
	o := t.exploration(first, seeds)
	o.Watch = func(r explore.Report) {
		report = r
		if _, ok := convicting(r, t, known); ok || m.spent(t, Result{Runs: out.Runs + r.Runs, CPU: out.CPU + r.CPU}) {
			stop()
		}
	}
	_, err := of.explore(limited, t, o)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(limited.Err(), context.DeadlineExceeded) {
		out.CPU = m.Budget // it is so slow that the rest would not fit
		if t.OnServers() {
			out.Runs, out.Failed = serverRuns, out.Failed+1
		}
		return nil
	}
	out.Runs += report.Runs
	out.CPU += report.CPU
	out.Failed += report.Failed
	out.Undecided += report.Inconclusive
	if len(report.Failures) > 0 && out.Failure == "" {
		out.Failure = t.String() + ": " + report.Failures[0].Failure
	}
	if _, ok := convicting(report, t, known); !ok {
		return err
	}
	var base map[checker.Property]bool
	if t.drawn == nil {
		if base, err = m.baselineOf(ctx, t)(); err != nil {
			return err
		}
	}
	f, ok := convicting(report, t, base)
	if !ok {
		return nil
	}
	if t.drawn != nil { // each seed is another scenario
		first = f.Seed
	}
	if !t.OnServers() { // there, the same seed makes another run
		same, err := m.unmodified(ctx, t, first, int(f.Seed-first)+1)
		if err != nil {
			return err
		}
		base = violated(same, base)
	}
	if f, ok = convicting(report, t, base); ok {
		out.Convicted, out.By, out.Seed = true, t, f.Seed
		out.Property, out.Rule, out.Sentence = f.Kind.Property, f.Kind.Rule, f.Sentence
	}
	return nil
}

// wallFactor is how many times its budget of processor time a row may take.
const wallFactor = 10

// convicting is the first finding that the scenario does not expect and that the lock without a planted bug does not
// show there.
func convicting(r explore.Report, t Target, known map[checker.Property]bool) (explore.Finding, bool) {
	expected, _ := t.scenario.ExpectedOfLock() // the loader has looked up the lock
	i := slices.IndexFunc(r.Findings, func(f explore.Finding) bool {
		p := f.Kind.Property
		return !known[p] && !expected[p].Has(checker.Violated)
	})
	if i < 0 {
		return explore.Finding{}, false
	}
	return r.Findings[i], true
}

// baselineOf is the baseline of t.
func (m *Measurer) baselineOf(ctx context.Context, t Target) baseline {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.baseline == nil {
		m.baseline = map[string]baseline{}
	}
	if m.baseline[t.String()] == nil {
		m.baseline[t.String()] = sync.OnceValues(func() (map[checker.Property]bool, error) {
			seeds := baselineSeeds
			if t.OnServers() {
				seeds = serverSeeds
			}
			r, err := m.unmodified(ctx, t, m.First, seeds)
			if err != nil { // it ends the measurement
				return nil, err
			}
			found := violated(r, nil)
			if len(r.Findings) > 0 && t.scenario.Expect.Is(checker.Safe) {
				m.Note("%s: without a planted bug %d of %d runs are unsafe: %s", t, r.Unsafe, r.Runs, r.Findings[0].Sentence)
				for _, s := range checker.Catalog() { // it convicts nothing: more seeds might show any of them
					found[s.Name] = true
				}
			}
			return found, nil
		})
	}
	return m.baseline[t.String()]
}

// Unexpected explores some seeds of t without a planted bug, and returns the violations that its scenario does not
// expect.
func (m *Measurer) Unexpected(ctx context.Context, t Target, seeds int) (all []explore.Finding, runs int, err error) {
	expected, _ := t.scenario.ExpectedOfLock() // the loader has looked up the lock
	r, err := m.unmodified(ctx, t, m.First, seeds)
	return slices.DeleteFunc(r.Findings, func(f explore.Finding) bool {
		return expected[f.Kind.Property].Has(checker.Violated)
	}), r.Runs, err
}

// unmodified explores some seeds of t without a planted bug.
func (m *Measurer) unmodified(ctx context.Context, t Target, first uint64, seeds int) (explore.Report, error) {
	of, err := m.open(ctx, Row{})
	if err != nil {
		return explore.Report{}, err
	}
	defer of.pool.Close()
	return of.explore(ctx, t, t.exploration(first, seeds))
}

// violated are the properties in known and the ones that r violates.
func violated(r explore.Report, known map[checker.Property]bool) map[checker.Property]bool {
	all := map[checker.Property]bool{}
	maps.Copy(all, known)
	for _, f := range r.Findings {
		all[f.Kind.Property] = true
	}
	return all
}

// known are the properties that the lock without a planted bug is known to violate in t.
func (m *Measurer) known(t Target) map[checker.Property]bool {
	m.mu.Lock()
	known := m.baseline[t.String()]
	m.mu.Unlock()
	if known == nil {
		return nil
	}
	found, _ := known() // its error ends the measurement elsewhere
	return found
}
