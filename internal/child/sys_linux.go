package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func attributes(spec Spec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if !spec.Orphan {
		a.Pdeathsig = syscall.SIGKILL
	}
	if u := spec.User; u != nil {
		a.Credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
	}
	return a
}

// reap waits for the exit. It reaps the process only with the lock held: the
// number of a zombie is not reused.
func (p *Process) reap() {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // its own children
	p.state, _ = p.cmd.Process.Wait()
	p.ended = true
}

// signal sends sig to the process and its process group.
func (p *Process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return ErrExited
	}
	return syscall.Kill(-p.pid, sig)
}

func (p *Process) kill() error {
	if p.PID() == 0 {
		return ErrExited
	}
	if p.mark != "" { // a server such as PostgreSQL replaces processes of its own that die
		_ = p.signal(syscall.SIGSTOP)
		_ = p.await(func() bool { return stopped(p.pid) })
	}
	strays := p.killStrays()
	return errors.Join(p.signal(syscall.SIGKILL), strays)
}

func (p *Process) stop() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return p.await(func() bool { return stopped(p.pid) && groupStopped(p.pid) && p.stopStrays() })
}

func (p *Process) resume() error {
	err := p.signal(syscall.SIGCONT)
	p.continueStrays()
	if err != nil {
		return err
	}
	return p.await(func() bool { return !stopped(p.pid) })
}

// await polls until ok, the exit of the process or a deadline. The kernel has no event for a parent
// that must not consume the exit status (WSTOPPED with WNOWAIT interferes with reap).
func (p *Process) await(ok func() bool) error {
	for began := time.Now(); !ok(); time.Sleep(100 * time.Microsecond) {
		select {
		case <-p.done:
			return ErrExited
		default:
		}
		if time.Since(began) > signalWait {
			return fmt.Errorf("no effect after %v", signalWait)
		}
	}
	return nil
}

// stopped reports whether every thread of pid is stopped: one inside a system
// call stops a little later than the others.
func stopped(pid int) bool {
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, file := range threads {
		line, err := os.ReadFile(file)
		if errors.Is(missing(err), os.ErrNotExist) {
			continue // a thread that exited in between
		}
		s, err := parseStat(line)
		if err != nil || s.State != 'T' && s.State != 't' {
			return false
		}
	}
	return true
}

// groupStopped reports whether every live process in the group of leader is stopped:
// the client may be a child of a wrapper script.
func groupStopped(leader int) bool {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return false
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has exited
		}
		if s, err := parseStat(line); err == nil && s.Group == leader && s.Alive() && s.State != 'T' && s.State != 't' {
			return false
		}
	}
	return true
}
