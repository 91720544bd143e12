package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lockchaos/lockchaos/internal/evaluation"
	"github.com/lockchaos/lockchaos/internal/lab/libraries"
)

// pictureTries limits the runs, each with the next seed, that are made to show a finding.
const pictureTries = 3

// pictures draws a run of each finding of the locks that match o.only, if the finding has no picture yet. A finding of
// a generated scenario gets no picture, nor does a finding that no run shows.
func (o options) pictures(ctx context.Context, all []evaluation.Report) error {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	for _, r := range all {
		for _, f := range r.Own() {
			file := libraries.Picture(r.Lock, f)
			if _, err := os.Stat(file); err == nil || !pattern.MatchString(r.Lock) ||
				strings.HasPrefix(f.Scenario, "generated-") {
				continue
			}
			drawn, err := o.draw(ctx, r.Lock, f, file)
			if err != nil {
				return err
			}
			fmt.Printf("%s %s in %s: drawn: %v\n", r.Lock, f.ID(), f.Scenario, drawn)
		}
	}
	return nil
}

// draw makes runs until one shows the finding, and draws that.
func (o options) draw(ctx context.Context, lock string, f evaluation.Finding, file string) (drawn bool, err error) {
	dir, err := os.MkdirTemp("", "lockchaos-pictures-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for seed := range pictureTries {
		out, err := exec.CommandContext(ctx, o.chaos, "run", "--scenario", f.Scenario, "--lock", lock, "--set",
			"init_timeout=60s", "--seed", fmt.Sprint(f.Seed+uint64(seed)), "--json", "--out", dir).Output()
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		var run struct {
			Path  string
			Story struct{ Cause string }
			// Judgement shows whether the property is violated, for a finding without a known cause.
			Judgement struct {
				Results []struct{ Property, Outcome string }
			}
		}
		if json.Unmarshal(out, &run) != nil {
			return false, fmt.Errorf("%s with %s: %w", f.Scenario, lock, err)
		}
		shown := run.Story.Cause == f.Cause && f.ID() == f.Cause
		for _, p := range run.Judgement.Results {
			shown = shown || f.ID() != f.Cause && p.Property == string(f.Property) && p.Outcome == "violated"
		}
		if !shown {
			continue
		}
		picture, err := exec.CommandContext(ctx, o.chaos, "report", run.Path, "--format", "svg").Output()
		if err != nil {
			return false, err
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return false, err
		}
		return true, os.WriteFile(file, picture, 0o644)
	}
	return false, nil
}
