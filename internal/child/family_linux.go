package child

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
)

// strays are the live processes of a family that have left its process group, with setsid for example: the descendants
// of its leader, and processes whose parent has exited but which inherited the mark, a variable as name=value.
func strays(leader int, mark string) []Identity {
	name, want, marked := strings.Cut(mark, "=")
	if !marked {
		return nil
	}
	pids := processes()
	status := make(map[int]Status, len(pids))
	for _, pid := range pids {
		if s, err := Stat(pid); err == nil && s.Alive() && pid != os.Getpid() {
			status[pid] = s
		}
	}
	descends := func(pid int) bool {
		for s, ok := status[pid]; ok; s, ok = status[pid] {
			if pid = s.Parent; pid == leader {
				return true
			}
		}
		return false
	}
	var found []Identity
	for _, pid := range pids {
		s, alive := status[pid]
		if !alive || s.Group == leader {
			continue
		}
		if descends(pid) {
			found = append(found, Identity{pid, s.Started})
		} else if value, ok := variable(pid, name); ok && value == want {
			found = append(found, Identity{pid, s.Started})
		}
	}
	return found
}

// signal sends sig to that very process, if it has not exited.
func (id Identity) signal(sig syscall.Signal) error {
	proc, err := os.FindProcess(id.PID) // a pidfd, so a process that reuses the number is not hit
	if err != nil {
		return nil
	}
	defer proc.Release()
	if !id.Alive() {
		return nil
	}
	if err := proc.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// stopStrays stops the processes of the family that have left its group, and reports whether all of them are stopped. A
// process that they start meanwhile is stopped by the next call.
func (p *Process) stopStrays() bool {
	all := true
	for _, id := range strays(p.pid, p.mark) {
		if stopped(id.PID) {
			continue
		}
		all = false
		if id.signal(syscall.SIGSTOP) == nil {
			p.mu.Lock()
			p.stopped = append(p.stopped, id)
			p.mu.Unlock()
		}
	}
	return all
}

// continueStrays resumes the processes that stopStrays has stopped.
func (p *Process) continueStrays() {
	p.mu.Lock()
	ids := p.stopped
	p.stopped = nil
	p.mu.Unlock()
	for _, id := range ids {
		_ = id.signal(syscall.SIGCONT)
	}
}

// killStrays kills the processes of the family that have left its group. The leader must be alive: its exit hides
// which are its descendants.
func (p *Process) killStrays() error {
	ctx, cancel := context.WithTimeout(context.Background(), signalWait)
	defer cancel()
	var errs []error
	for _, id := range strays(p.pid, p.mark) {
		_, err := id.Kill(ctx)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
