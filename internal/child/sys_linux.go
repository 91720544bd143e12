package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func attributes(orphan bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if !orphan {
		a.Pdeathsig = syscall.SIGKILL
	}
	return a
}

// reap waits for the end. It leaves the dead process unreaped until the lock is
// held: as long as it is a zombie nobody else can get its number.
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
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // what the child itself has started
	p.state, _ = p.cmd.Process.Wait()
	p.ended = true
}

// signal sends sig to the process and to what it has started.
func (p *Process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return ErrGone
	}
	return syscall.Kill(-p.pid, sig)
}

func (p *Process) kill() error { return p.signal(syscall.SIGKILL) }

func (p *Process) stop() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return p.await(func() bool { return standsStill(p.pid) && groupStandsStill(p.pid) })
}

func (p *Process) resume() error {
	if err := p.signal(syscall.SIGCONT); err != nil {
		return err
	}
	return p.await(func() bool { return !standsStill(p.pid) })
}

// await polls until ok, the end of the process or a deadline; the kernel offers no event for it to a
// parent that must not take the exit status away (WNOWAIT and WSTOPPED do not mix with reap).
func (p *Process) await(ok func() bool) error {
	for began := time.Now(); !ok(); time.Sleep(100 * time.Microsecond) {
		select {
		case <-p.done:
			return ErrGone
		default:
		}
		if time.Since(began) > killWait {
			return fmt.Errorf("no change after %v", killWait)
		}
	}
	return nil
}

// standsStill says whether every thread of pid is stopped: a thread that was
// inside a system call stops a little later than the first one.
func standsStill(pid int) bool {
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, file := range threads {
		line, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // a thread that ended in between
		}
		state, _, err := parseStat(line)
		if err != nil || (state != 'T' && state != 't') {
			return false
		}
	}
	return true
}

// groupStandsStill says the same of every process in the group of leader: what
// a wrapper script has started is the client too.
func groupStandsStill(leader int) bool {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return false
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid pgrp …, and the name may have anything in it: proc(5).
		fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(leader) && !strings.ContainsAny(fields[0], "TtZX") {
			return false
		}
	}
	return true
}
