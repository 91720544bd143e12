package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// newRun is the prefix of the names of the directories of runs in progress.
const newRun = ".run-"

// outputFile has the output of a run whose directory was kept.
const outputFile = "output.txt"

// interruptWait is how long an interrupted run may take to heal its faults and to write its report.
const interruptWait = 30 * time.Second

// attempt makes one run and completes row with it. It returns the directory in which the run directory is;
// nil: none could be made.
func (r *suiteRun) attempt(ctx context.Context, t task, row *Row) *ledger.DataDir {
	own, err := r.newDir(filepath.Join(r.Out, RunsDir), newRun)
	if err != nil {
		row.Outcome, row.Why = Unable, []string{err.Error()}
		return nil
	}
	if own.Unlocked != nil && r.Note != nil {
		r.unlocked.Do(func() {
			r.Note(fmt.Sprintf("%s has no file locks: if this suite is killed, remove %s by hand (%v)", r.Out,
				filepath.Join(r.Out, RunsDir, newRun+"*"), own.Unlocked))
		})
	}
	dir := own.Path
	args := slices.Concat(r.Command[1:], []string{"run", "--scenario", t.scenario.Arg, "--backend", r.Backend,
		"--seed", fmt.Sprint(row.Seed), "--out", dir}, r.Args, t.scenario.Args)
	output := filepath.Join(dir, outputFile)
	limit, cancel := context.WithTimeout(ctx, r.Limit+t.scenario.Duration)
	defer cancel()
	code, err := execute(limit, child.Spec{Path: r.Command[0], Args: args, Stderr: output})
	run := r.read(dir, row)
	switch {
	case err != nil:
		row.Outcome, row.Why = Unable, []string{err.Error()}
	case ctx.Err() != nil:
		row.Outcome, row.Why = NotRun, []string{"the suite was interrupted"}
	case limit.Err() != nil:
		row.Outcome, row.Why = Broken, []string{fmt.Sprintf("the run did not end within %v", r.Limit+t.scenario.Duration)}
	case run != nil && code <= exitThreshold:
		row.Outcome, row.Why = t.scenario.compare(*run)
	default:
		row.Outcome, row.Why = Broken, []string{fmt.Sprintf("exit code %d: %s", code, lastLine(output))}
		if run != nil && row.Verdict == checker.NotRun {
			row.Why = []string{fmt.Sprintf("exit code %d: not run: %s", code, run.judgement.Sentence)}
		}
		if code == exitUnable {
			row.Outcome = Unable
		}
		if run != nil && strings.HasPrefix(run.judgement.Sentence, client.ErrUnfit.Error()) {
			row.Outcome, row.Why = Skipped, []string{run.judgement.Sentence}
		}
	}
	return own
}

// execute runs a program and returns its exit code. When ctx ends, the program is interrupted, and killed if that does
// not end it.
func execute(ctx context.Context, spec child.Spec) (code int, err error) {
	p, err := child.Start(spec)
	if err != nil {
		return 0, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		_ = p.Interrupt()
		select {
		case <-p.Done():
		case <-time.After(interruptWait):
			err = p.Kill()
		}
	}
	if exit, ok := errors.AsType[*exec.ExitError](p.Wait()); ok {
		code = exit.ExitCode()
	}
	return code, err
}

// judged is the content of a run directory.
type judged struct {
	manifest  rundir.Manifest
	judgement checker.Judgement
}

// read completes row with the run directory in dir; nil: there is none, or it was not judged.
func (r *suiteRun) read(dir string, row *Row) *judged {
	d, err := rundir.Open(filepath.Join(dir, rundir.Latest))
	if err != nil {
		return nil
	}
	m, err := d.ReadManifest()
	if err != nil {
		return nil
	}
	row.Lock, row.Backend, row.Repeat = m.Lock, m.Backend, m.Repeat
	row.LockVersion = m.Versions["chaos"]
	if v := m.Versions["lock"]; v != "" { // an external lock has a version of its own
		row.LockVersion = v
	}
	j, err := d.ReadVerdict()
	if err != nil {
		return nil
	}
	row.Verdict, row.Class = j.Verdict, j.Class
	row.Exercised = slices.ContainsFunc(j.Results, func(x checker.Result) bool {
		return x.Property == checker.Exercised && x.Outcome == checker.Holds
	})
	return &judged{m, j}
}

// compare is the outcome of a judged run, and every difference from the expectation.
func compare(run judged) (Outcome, []string) {
	var why []string
	undecided, tooLittle := true, false // nothing but undecided properties; a verdict that the run could not reach
	for _, c := range expect.Compare(run.judgement, run.manifest.Expectation()) {
		if c.Met {
			continue
		}
		why = append(why, expect.Text(c))
		undecided = undecided && (c.Actual == string(checker.Undecided) || c.Actual == string(checker.Inconclusive) ||
			c.Name == string(checker.Exercised))
		tooLittle = tooLittle || c.Name == expect.Verdict && c.Actual == string(checker.Inconclusive)
	}
	switch {
	case len(why) == 0:
		return AsExpected, nil
	case undecided, tooLittle:
		return Inconclusive, why
	}
	return Differs, why
}

// lastLine is the last non-empty line of a file, in printable characters.
func lastLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return format.Truncate(format.Printable(lines[len(lines)-1]), 300)
}
