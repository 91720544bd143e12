// Package child starts programs that must not outlive this one: servers and
// clients under test. It is not a supervisor: it restarts nothing and interprets no output. Package ledger records the
// processes.
//
// Read [Process] first. On Linux a child gets SIGKILL when this program exits for
// any reason, has its own process group (so that Ctrl-C in the terminal does not
// reach it), and Stop and Continue return when the kernel has carried them out.
// Elsewhere these two return [errors.ErrUnsupported].
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

// signalWait is how long Kill, Stop and Continue wait for the effect of their
// signal, which takes less than a millisecond unless the disk hangs.
const signalWait = 10 * time.Second

// ErrExited: the process has exited.
var ErrExited = errors.New("process has exited")

// Spec describes the process to start.
type Spec struct {
	Path   string   // program; looked up on the PATH if it has no slash
	Args   []string // without the program's own name
	Dir    string   // working directory; empty: this program's
	Env    []string // "K=V"; nil: this program's
	Pipes  bool     // open Stdin and Stdout
	Stderr string   // file to which standard error (without Pipes: also standard output) is appended; empty: discarded
	// MaxStderr is after how many bytes standard error is only counted; the file then ends with the number of bytes
	// that it lacks. 0: no limit.
	MaxStderr int64
	Orphan    bool // may outlive this program; the ledger's sweep then ends it
	// User is the user that it runs as, which only root can choose; nil: this program's.
	User *User
	// Mark is a variable as "K=V" that is added to Env. Stop, Continue and Kill then also reach descendants that have left
	// the process group (setsid), by their parents and by the mark that they inherited. "": the process group alone.
	Mark string
}

// User is a user of this machine and its group.
type User struct{ UID, GID int }

// Process is a running child. Its methods may be called concurrently. The caller
// of [Start] calls Kill or Wait.
type Process struct {
	cmd    *exec.Cmd
	pid    int
	mark   string
	stdin  *os.File
	stdout *os.File
	log    *cappedLog    // nil without Spec.MaxStderr
	done   chan struct{} // closed when it has exited, was reaped, and its log is complete

	mu    sync.Mutex // held while signaling, so that no signal reaches another process that reuses the number
	ended bool
	state *os.ProcessState

	killed time.Time // when Kill had sent its signal; zero: it has not

	stopped []Identity // outside the process group
}

// forks is the one goroutine that starts children. Pdeathsig is sent when the
// thread that forked exits, not the program (prctl(2), golang/go#27505): that
// thread must live as long as the program, so the goroutine locks it.
//
//nolint:gochecknoglobals // computed once, never changed
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
	cmd.SysProcAttr = attributes(spec)
	if spec.Mark != "" {
		cmd.Env = append(cmd.Environ(), spec.Mark)
	}
	p := &Process{cmd: cmd, mark: spec.Mark, done: make(chan struct{})}
	theirs, err := p.open(spec)
	if err == nil {
		started := make(chan error, 1)
		forks() <- func() { started <- cmd.Start() }
		err = <-started
	}
	closeAll(theirs)
	if err != nil {
		p.closePipes()
		if p.log != nil {
			p.log.close()
		}
		return nil, fmt.Errorf("starting %s: %w", spec.Path, err)
	}
	p.pid = cmd.Process.Pid
	if p.log != nil {
		go p.log.copy()
	}
	go func() {
		p.reap()
		if p.log != nil {
			p.log.drain()
		}
		close(p.done)
	}()
	return p, nil
}

// open opens the child's files. Those returned are the child's ends, which Start closes once it runs.
func (p *Process) open(spec Spec) (theirs []*os.File, err error) {
	if spec.Stderr != "" {
		log, err := os.OpenFile(spec.Stderr, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		if spec.MaxStderr > 0 {
			if p.log, log, err = newCappedLog(log, spec.MaxStderr); err != nil {
				return nil, err
			}
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

// Stdin writes to the child's standard input, nil without Spec.Pipes. The caller closes it.
func (p *Process) Stdin() io.WriteCloser {
	if p.stdin == nil {
		return nil
	}
	return p.stdin
}

// Stdout reads the child's standard output, nil without Spec.Pipes. It ends when
// the child has exited; the caller closes it.
func (p *Process) Stdout() io.ReadCloser {
	if p.stdout == nil {
		return nil
	}
	return p.stdout
}

// PID is the number of the process, 0 once it has exited.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return 0
	}
	return p.pid
}

// Done is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns when the process has exited; the error is nil for exit code 0.
func (p *Process) Wait() error {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != nil && p.state.Success() {
		return nil
	}
	return &exec.ExitError{ProcessState: p.state}
}

// Interrupt sends SIGINT to the process. The error wraps [ErrExited] if it has exited.
func (p *Process) Interrupt() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := ErrExited
	if !p.ended {
		err = p.cmd.Process.Signal(os.Interrupt)
	}
	if err != nil {
		return fmt.Errorf("interrupting process %d: %w", p.pid, err)
	}
	return nil
}

// Kill sends SIGKILL to the process and its process group (see also [Spec.Mark]) and returns when it has
// exited. It may be called twice, and after the exit.
func (p *Process) Kill() error {
	err := p.kill()
	if err != nil && !errors.Is(err, ErrExited) {
		return fmt.Errorf("killing process %d: %w", p.pid, err)
	}
	if err == nil {
		p.mu.Lock()
		if p.killed.IsZero() {
			p.killed = time.Now()
		}
		p.mu.Unlock()
	}
	timer := time.NewTimer(signalWait)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("killing process %d: still running after %v", p.pid, signalWait)
	}
}

// Killed is when Kill had sent its signal to the running process; zero: it has not. The program executes nothing
// afterwards, but on a busy machine its exit may come seconds later.
func (p *Process) Killed() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// Stop sends SIGSTOP to the process group and returns when every thread in it is
// stopped. The error wraps [ErrExited] if the process has exited.
func (p *Process) Stop() error {
	if err := p.stop(); err != nil {
		return fmt.Errorf("stopping process %d: %w", p.pid, err)
	}
	return nil
}

// Continue sends SIGCONT; a running process is not affected.
func (p *Process) Continue() error {
	if err := p.resume(); err != nil {
		return fmt.Errorf("continuing process %d: %w", p.pid, err)
	}
	return nil
}
