// Package disturbed measures whether a run convicts a lock because of a disturbance from outside of the run: another
// program stopped the harness, a server or a client, or used up the processors. No fault of a scenario does that, so
// a correct lock must not be convicted for it.
//
// Read [Disturbance] first.
package disturbed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// Victim is the process that a disturbance stops.
type Victim string

// The victims.
const (
	Nothing Victim = ""
	Harness Victim = "harness"
	Server  Victim = "server" // a server that the harness started
	Client  Victim = "client" // one process
)

// Disturbance stops a process of a run with SIGSTOP, as one does by hand, while its clients are at work.
type Disturbance struct {
	Victim Victim
	For    time.Duration
	Busy   int // loops that use up a processor each, see [KeepBusy]
}

// All are the disturbances that no correct lock is convicted for.
func All() []Disturbance {
	return []Disturbance{
		{Busy: 2}, {Victim: Harness, For: 3 * time.Second},
		{Victim: Server, For: time.Second}, {Victim: Server, For: 5 * time.Second},
		{Victim: Client, For: time.Second}, {Victim: Client, For: 5 * time.Second},
	}
}

// String describes the disturbance for people.
func (d Disturbance) String() string {
	if d.Victim == Nothing {
		return fmt.Sprintf("%d busy loops", d.Busy)
	}
	return fmt.Sprintf("%s stopped for %v", d.Victim, d.For)
}

// Run is one run on real servers.
type Run struct {
	Program  []string // chaos; its last words are options of the command run
	Env      []string // of the program
	Scenario string
	Seed     uint64 // of the scenario, of the victim, and of the instant at which it is stopped
	Out      string // directory for the run
}

// Result is how a run ended.
type Result struct {
	Judgement checker.Judgement
	Dir       *rundir.Dir
	Stopped   int // the process that was stopped; 0: the run ended before, or nothing was to be stopped
}

// ErrNotRun reports that this machine cannot run the scenario.
var ErrNotRun = errors.New("the scenario cannot run here")

// The exit codes of chaos for a run that did not take place.
const (
	exitUsage       = 64
	exitEnvironment = 69
)

// Disturb executes a run, and stops the victim once.
func (d Disturbance) Disturb(ctx context.Context, r Run) (*Result, error) {
	args := append(slices.Clone(r.Program[1:]), "run", "--scenario", r.Scenario, "--backend", "process",
		"--seed", strconv.FormatUint(r.Seed, 10), "--out", r.Out)
	cmd := exec.CommandContext(ctx, r.Program[0], args...)
	cmd.Env = r.Env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var text strings.Builder
	cmd.Stderr = &text
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", r.Program[0], err)
	}
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = cmd.Wait()
	}()
	latest := filepath.Join(r.Out, rundir.Latest)
	stopped := d.stop(r.Seed, cmd.Process.Pid, filepath.Join(latest, rundir.HistoryFile), ended)
	<-ended
	if code := cmd.ProcessState.ExitCode(); code == exitUsage || code == exitEnvironment {
		return nil, fmt.Errorf("%w: %s", ErrNotRun, strings.TrimSpace(text.String()))
	}
	var exit *exec.ExitError
	if failed != nil && !errors.As(failed, &exit) {
		return nil, fmt.Errorf("running %s: %w", r.Scenario, failed)
	}
	dir, err := rundir.Open(latest)
	if err != nil {
		return nil, fmt.Errorf("running %s: %w\n%s", r.Scenario, err, text.String())
	}
	j, err := dir.ReadVerdict()
	return &Result{Judgement: j, Dir: dir, Stopped: stopped}, err
}

// Spin is the argument that makes a program which calls [SpinIfAsked] a busy loop.
const Spin = "spin-until-the-parent-ends"

// SpinIfAsked uses up a processor, and does not return, if [KeepBusy] started this process.
func SpinIfAsked() {
	if len(os.Args) == 2 && os.Args[1] == Spin {
		for { //nolint:staticcheck // it is for using up a processor
		}
	}
}

// KeepBusy starts busy loops, which are copies of this program, and returns a function that ends them. The program has
// to call [SpinIfAsked].
func KeepBusy(loops int) (idle func(), err error) {
	var all []*child.Process
	idle = func() {
		for _, p := range all {
			_ = p.Kill()
		}
	}
	self, err := os.Executable()
	for n := 0; n < loops && err == nil; n++ {
		var p *child.Process
		if p, err = child.Start(child.Spec{Path: self, Args: []string{Spin}}); err == nil {
			all = append(all, p)
		}
	}
	if err != nil {
		idle()
		return nil, fmt.Errorf("starting a busy loop: %w", err)
	}
	return idle, nil
}

// stop stops the victim once, when the history of the run has reached an instant that the seed draws, and returns its
// number; 0 if there was none before the run had ended.
func (d Disturbance) stop(seed uint64, harness int, file string, ended <-chan struct{}) int {
	if d.Victim == Nothing {
		return 0
	}
	draw := rand.New(rand.NewPCG(seed, 0x5709))
	at := 700*time.Millisecond + time.Duration(draw.Int64N(int64(time.Second)))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !reached(file, at) {
		select {
		case <-ended:
			return 0
		case <-tick.C:
		}
	}
	pid, group := harness, harness
	if d.Victim != Harness {
		of := victims(harness, d.Victim)
		if len(of) == 0 {
			return 0
		}
		pid = of[draw.IntN(len(of))]
		group = -pid // each child leads a process group
	}
	if syscall.Kill(group, syscall.SIGSTOP) != nil {
		return 0
	}
	defer func() { _ = syscall.Kill(group, syscall.SIGCONT) }()
	for s := (child.Status{}); s.State != 'T'; s, _ = child.Stat(pid) { // on a busy machine it is stopped later
		select {
		case <-ended:
			return 0
		case <-tick.C:
		}
	}
	select {
	case <-time.After(d.For):
	case <-ended: // a fault has killed it
	}
	return pid
}
