package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Status is the kernel's report about a process.
type Status struct {
	State   byte   // R running, S sleeping, T stopped, Z zombie, …
	Parent  int    // number of its parent
	Group   int    // number of its process group
	Started uint64 // clock ticks since boot
	exiting bool   // killed by a signal, or in exit(2)
}

// Alive reports whether the process has not exited; a zombie has.
func (s Status) Alive() bool { return s.State != 'Z' && s.State != 'X' }

// Stat reads the status of process pid from /proc, which only Linux has. The
// error wraps [os.ErrNotExist] if there is no such process.
func Stat(pid int) (Status, error) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Status{}, fmt.Errorf("reading the status of process %d: %w", pid, missing(err))
	}
	return parseStat(line)
}

// missing makes the error of a read from /proc wrap [os.ErrNotExist] if the process has
// ended since the file was opened.
func missing(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("%w: %w", os.ErrNotExist, err)
	}
	return err
}

// parseStat reads /proc/PID/stat: number, (name), state, parent, group, …, and the
// start time as field 22. The name may hold spaces and brackets (proc(5)), so
// fields are counted from the last bracket.
func parseStat(line []byte) (Status, error) {
	const parent, group, flags, started = 4 - 3, 5 - 3, 9 - 3, 22 - 3 // counted from the state, which is field 3
	const exiting, signaled = 0x4, 0x400                              // PF_EXITING, PF_SIGNALED
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) <= started || len(fields[0]) != 1 {
		return Status{}, fmt.Errorf("parsing process status %q: too few fields", line)
	}
	s := Status{State: fields[0][0]}
	var err1, err2, err3 error
	s.Parent, err1 = strconv.Atoi(string(fields[parent]))
	s.Group, err2 = strconv.Atoi(string(fields[group]))
	s.Started, err3 = strconv.ParseUint(string(fields[started]), 10, 64)
	bits, err4 := strconv.ParseUint(string(fields[flags]), 10, 64)
	s.exiting = bits&(exiting|signaled) != 0
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return Status{}, fmt.Errorf("parsing process status %q: %w", line, err)
	}
	return s, nil
}

// Ending reports whether process pid has exited or is about to: SIGKILL is pending, or the kernel is tearing the
// process down. That takes a while on a busy machine, and the process still holds its locks meanwhile. False on a
// system without /proc.
func Ending(pid int) bool {
	if _, err := Stat(os.Getpid()); err != nil || pid <= 0 {
		return false
	}
	pending := killPending(pid) // first: the kernel takes the signal from the pending ones and then sets the flag
	s, err := Stat(pid)
	return errors.Is(err, os.ErrNotExist) || err == nil && (pending || s.exiting || !s.Alive())
}

// killPending reports whether SIGKILL was sent to a process that has not noticed yet.
func killPending(pid int) bool {
	const sigkill = 1 << (9 - 1)
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range bytes.Lines(text) {
		name, mask, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "SigPnd" && string(name) != "ShdPnd" { // of its first thread, and of the whole process
			continue
		}
		if bits, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64); err == nil && bits&sigkill != 0 {
			return true
		}
	}
	return false
}

// Identity identifies one process for good: the kernel reuses numbers, but not
// together with a start time. The zero value is no process.
type Identity struct {
	PID     int    `json:"pid,omitempty"`
	Started uint64 `json:"started,omitempty"` // clock ticks since boot
}

// Identify is the identity of the process that has number pid now. The error is [Stat]'s.
func Identify(pid int) (Identity, error) {
	s, err := Stat(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, Started: s.Started}, nil
}

// Alive reports whether that very process has not exited.
func (id Identity) Alive() bool {
	s, err := Stat(id.PID)
	return err == nil && s.Started == id.Started && s.Alive()
}

// Kill sends SIGKILL to a process that need not be a child of this one, and waits
// until it has exited; killed is false if it had before. The handle is opened before
// the identity is checked: on Linux it is a pidfd, so a process that reuses the
// number is not hit. SIGKILL also ends a stopped process (signal(7)).
func (id Identity) Kill(ctx context.Context) (killed bool, err error) {
	if id.PID <= 0 {
		return false, nil
	}
	proc, err := os.FindProcess(id.PID)
	if err != nil {
		return false, nil // it has exited
	}
	defer proc.Release()
	if !id.Alive() {
		return false, nil
	}
	if err := proc.Kill(); errors.Is(err, os.ErrProcessDone) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("killing process %d: %w", id.PID, err)
	}
	tick := time.NewTicker(time.Millisecond) // the exit of another program's child sends no event
	defer tick.Stop()
	for id.Alive() {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("killing process %d: still running: %w", id.PID, ctx.Err())
		case <-tick.C:
		}
	}
	return true, nil
}
