// Package child starts programs that must not outlive this one: servers and
// clients under test. It is not a supervisor: it restarts nothing and reads no
// output; what was started is written down by package ledger.
//
// Read [Process] first. On Linux a child gets SIGKILL when this program dies,
// however it dies, sits in a process group of its own (so that Ctrl-C in the
// terminal does not reach it), and can be stopped and continued with proof.
// Elsewhere Stop and Continue answer [errors.ErrUnsupported].
package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// killWait is how long Kill waits for the kernel to end a process, and Stop for
// it to stand still; both take less than a millisecond unless the disk hangs.
const killWait = 10 * time.Second

// ErrGone says that the process has ended.
var ErrGone = errors.New("process has ended")

// Spec is what to start.
type Spec struct {
	Path   string   // program; looked up on the PATH if it has no slash
	Args   []string // without the program's own name
	Dir    string   // working directory; empty: this program's
	Env    []string // "K=V"; nil: this program's
	Pipes  bool     // open Stdin and Stdout; without it both are elsewhere, see Stderr
	Stderr string   // file to which standard error (without Pipes: also standard output) is appended; empty: nowhere
	Orphan bool     // let it live on when this program dies; the ledger's sweep then has to end it
}

// Process is a running child. Its methods may be called from several
// goroutines. Whoever started it calls Kill or Wait.
type Process struct {
	cmd    *exec.Cmd
	pid    int
	stdin  *os.File
	stdout *os.File
	done   chan struct{} // closed when it has ended and was waited for

	mu    sync.Mutex // signals are sent under it, so that none reaches a process that took over the number
	ended bool
	state *os.ProcessState
}

// forks is the one goroutine that starts children. Pdeathsig follows the
// thread that forked, not the program (prctl(2), golang/go#27505): that thread
// must live as long as the program does, so the goroutine keeps it for itself.
var forks = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// Start starts spec. The error wraps [exec.ErrNotFound] if there is no such program.
func Start(spec Spec) (*Process, error) {
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Dir, cmd.Env = spec.Dir, spec.Env
	cmd.SysProcAttr = attributes(spec.Orphan)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	theirs, err := p.open(spec)
	if err == nil {
		started := make(chan error, 1)
		forks() <- func() { started <- cmd.Start() }
		err = <-started
	}
	closeAll(theirs)
	if err != nil {
		p.closePipes()
		return nil, fmt.Errorf("starting %s: %w", spec.Path, err)
	}
	p.pid = cmd.Process.Pid
	go func() {
		p.reap()
		close(p.done)
	}()
	return p, nil
}

// open connects the child's files; those returned belong to the child and are closed here once it runs.
func (p *Process) open(spec Spec) (theirs []*os.File, err error) {
	if spec.Stderr != "" {
		log, err := os.OpenFile(spec.Stderr, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, log)
		p.cmd.Stderr = log
		p.cmd.Stdout = log
	}
	if !spec.Pipes {
		return theirs, nil
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.cmd.Stdin, p.stdin = in, stdin
	theirs = append(theirs, in)
	stdout, out, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.cmd.Stdout, p.stdout = out, stdout
	return append(theirs, out), nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func (p *Process) closePipes() {
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	if p.stdout != nil {
		_ = p.stdout.Close()
	}
}

// Stdin is the writing end of the child's standard input, nil without
// Spec.Pipes. The caller closes it.
func (p *Process) Stdin() io.WriteCloser {
	if p.stdin == nil {
		return nil
	}
	return p.stdin
}

// Stdout is the reading end of the child's standard output, nil without
// Spec.Pipes. It ends when the child has ended; the caller closes it.
func (p *Process) Stdout() io.ReadCloser {
	if p.stdout == nil {
		return nil
	}
	return p.stdout
}

// PID is the number of the process, 0 once it has ended.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return 0
	}
	return p.pid
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns when the process has ended; the error is how, nil for exit code 0.
func (p *Process) Wait() error {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != nil && p.state.Success() {
		return nil
	}
	return &exec.ExitError{ProcessState: p.state}
}

// Kill ends the process, and everything in its process group, at once and
// returns when it is gone. It may be called twice, and after the end.
func (p *Process) Kill() error {
	if err := p.kill(); err != nil && !errors.Is(err, ErrGone) {
		return fmt.Errorf("killing process %d: %w", p.pid, err)
	}
	timer := time.NewTimer(killWait)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("killing process %d: still there after %v", p.pid, killWait)
	}
}

// Stop stops the process as SIGSTOP does and returns when every thread of it
// stands still. The error wraps [ErrGone] if it has ended.
func (p *Process) Stop() error {
	if err := p.stop(); err != nil {
		return fmt.Errorf("stopping process %d: %w", p.pid, err)
	}
	return nil
}

// Continue lets a stopped process go on; on a running one it does nothing.
func (p *Process) Continue() error {
	if err := p.resume(); err != nil {
		return fmt.Errorf("continuing process %d: %w", p.pid, err)
	}
	return nil
}
