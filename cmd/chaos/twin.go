package main

import (
	"context"
	"errors"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/scenarios"
)

// twinLimit bounds the simulation of a twin, which takes about half a second.
const twinLimit = 20 * time.Second

// measurePrevention simulates the twin of a scenario that ended unsafe, with the same seed, and records in run.json
// how that went. Without a twin, or if it cannot be simulated, the report has no measurement.
func measurePrevention(ctx context.Context, s streams, scenario scenarios.Scenario, out *runner.Outcome) {
	if out == nil || out.Dir == nil || scenario.Twin == nil || out.Judgement.Verdict != checker.Unsafe {
		return
	}
	twin, err := scenario.LoadTwin()
	if err != nil {
		s.note("the twin was not simulated: %v", err)
		return
	}
	pool, err := openPool(1)
	if err != nil {
		s.note("the twin was not simulated: %v", err)
		return
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, twinLimit)
	defer cancel()
	a, err := pool.Do(ctx, explore.Job{Scenario: twin.YAML(), Seed: out.Manifest.Seed})
	if err == nil && a.Failure != "" {
		err = errors.New(a.Failure)
	}
	if err != nil {
		s.note("the twin was not simulated: %v", err)
		return
	}
	out.Manifest.Twin = &rundir.Twin{Scenario: twin.Name, Summary: twin.Summary, Set: scenario.Twin.Set,
		Seed: out.Manifest.Seed, Verdict: a.Verdict, Sentence: a.Sentence}
	if err := out.Dir.WriteManifest(out.Manifest); err != nil {
		s.note("the result of the twin was not recorded: %v", err)
	}
}
