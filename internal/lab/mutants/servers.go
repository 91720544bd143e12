package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/topology"
)

// Limits of rows that are run on real servers, where a run takes about as long as a hundred simulated ones.
const (
	serverRuns  = 8 // of each row
	serverSeeds = 4 // of a scenario in a row, if a row names it
	serverTime  = 2 * time.Minute
)

// OnServers reports whether the scenario cannot be simulated.
func (t Target) OnServers() bool { return t.scenario.Topology.Kind == topology.Etcd }

// program is a build of cmd/chaos with a row applied.
type program struct {
	path, env string
	pool      *explore.Pool
}

// explore makes the runs of an exploration, in simulation if that is possible.
func (p program) explore(ctx context.Context, t Target, o explore.Options) (r explore.Report, err error) {
	if !t.OnServers() {
		return explore.Explore(ctx, p.pool, o)
	}
	for seed := o.First; seed < o.First+uint64(o.Seeds) && ctx.Err() == nil; seed++ {
		if err := p.run(ctx, t, seed, &r); err != nil {
			return r, err
		}
		if o.Watch != nil {
			o.Watch(r)
		}
	}
	return r, nil
}

// run makes a run on real servers and adds it to r.
func (p program) run(ctx context.Context, t Target, seed uint64, r *explore.Report) error {
	dir := filepath.Join(filepath.Dir(p.path), "runs")
	args := []string{
		"run", "--json", "--out", dir, "--scenario", t.Scenario, "--seed", strconv.FormatUint(seed, 10),
	}
	if t.Lock != "" {
		args = append(args, "--lock", t.Lock)
	}
	c := exec.CommandContext(ctx, p.path, args...)
	var out, errs bytes.Buffer
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), p.env), &out, &errs
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // it stops its servers
	failed := c.Run()                                                 // also if the run is unsafe
	if ctx.Err() != nil {
		return nil
	}
	if c.ProcessState == nil {
		return fmt.Errorf("starting a run: %w", failed)
	}
	r.Runs++
	r.CPU += c.ProcessState.UserTime() + c.ProcessState.SystemTime() // of its servers and clients, too
	var result struct {
		State     string            `json:"state"`
		Judgement checker.Judgement `json:"judgement"`
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil || result.State != "complete" {
		r.Failed++
		why := fmt.Sprintf("%v: %s", failed, last(errs.Bytes()))
		r.Failures = append(r.Failures, explore.Result{Seed: seed, Failure: why})
		return nil
	}
	if result.Judgement.Verdict == checker.Inconclusive {
		r.Inconclusive++
	}
	for _, kind := range explore.KindsOf(result.Judgement) {
		r.Findings = append(r.Findings, explore.Finding{Kind: kind, Runs: 1, Seed: seed, Sentence: result.Judgement.Sentence})
	}
	return nil
}

// last is the last line of a text.
func last(text []byte) []byte {
	text = bytes.TrimSpace(text)
	return text[bytes.LastIndexByte(text, '\n')+1:]
}
