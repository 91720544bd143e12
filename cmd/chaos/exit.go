package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/runner"
)

// Exit codes, as in exitHelp. From 64 on they are codes of sysexits.h, or 128 plus the number of a signal.
const (
	exitSafe         = 0
	exitUnsafe       = 1
	exitInconclusive = 2
	exitThreshold    = 3
	exitUsage        = 64
	exitEnvironment  = 69
	exitInternal     = 70
	exitInterrupted  = 130
	exitAborted      = 134 // by the Go runtime, see abortBySignal
	exitBrokenPipe   = 141
)

const exitHelp = `Exit codes:
  0    safe (with --expect: the outcome that the scenario expects)
  1    unsafe (with --expect: another outcome)
  2    inconclusive: the run did not test enough to decide
  3    safe (with --expect: as expected), but a threshold of the scenario is not met
  64   usage: wrong command line or invalid scenario
  69   environment: no redis-server, no permission, disk full, a limit of the user
       (ulimit), or your own client (exec:COMMAND) could not be set up
  70   internal error
  130  interrupted
  134  the Go runtime aborted (SIGABRT): internal error, or out of memory
  141  stdout closed (SIGPIPE); a run still completes and writes its report`

// codeError is an error with the exit code to end the program with. With a nil
// err the program ends without a message.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

func usage(err error) error {
	if err == nil {
		return nil
	}
	return &codeError{exitUsage, err}
}

// unusable is the error of an input, or of a disk on which results cannot be written.
func unusable(err error) error {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS,
		fs.ErrPermission} {
		if errors.Is(err, cause) {
			return &codeError{exitEnvironment, err}
		}
	}
	return usage(err)
}

// exitCode prints err, unless the output is closed, and chooses the exit code.
func exitCode(err error, io streams) int {
	if err == nil {
		return exitSafe
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitBrokenPipe
	}
	if coded, ok := errors.AsType[*codeError](err); ok {
		printError(err, io) // all of it: other errors may be joined with that one
		return coded.code
	}
	printError(err, io)
	switch {
	case errors.Is(err, runner.ErrInterrupted):
		return exitInterrupted
	case errors.Is(err, cluster.ErrOption):
		return exitUsage
	case isEnvironment(err):
		return exitEnvironment
	}
	return exitInternal
}

// printError prints err with the name of the program, and each error of an
// errors.Join on a line of its own.
func printError(err error, io streams) {
	for _, e := range format.Errors(err) {
		coded, ok := e.(*codeError) //nolint:errorlint // the joined errors are printed too
		switch {
		case !ok:
			io.note("chaos: %v", e)
		case coded.err != nil:
			printError(coded.err, io)
		}
	}
}

// isEnvironment reports whether err is about this machine and not about chaos.
func isEnvironment(err error) bool {
	for _, cause := range []error{
		cluster.ErrEnvironment, exec.ErrNotFound, fs.ErrPermission, fs.ErrNotExist, syscall.ENOSPC, syscall.EADDRINUSE,
		syscall.ENOTDIR, syscall.EROFS, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE,
		syscall.EFBIG, syscall.ENOMEM, syscall.EAGAIN, // limits of the user (ulimit)
		// a client that fails before the run begins
		client.ErrExited, client.ErrProtocol, client.ErrTimeout, client.ErrRefused, client.ErrUnfit,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// judgementError ends the program with the exit code of a judgement; nil for a safe run that meets its thresholds.
func judgementError(j checker.Judgement) error {
	err := verdictError(j.Verdict)
	if err == nil {
		err = thresholdError(j)
	}
	return err
}

// thresholdError ends the program if a threshold is not met.
func thresholdError(j checker.Judgement) error {
	if j.ThresholdsMet() {
		return nil
	}
	return &codeError{code: exitThreshold}
}

// verdictError ends the program with the exit code of a verdict; nil for safe.
func verdictError(v checker.Verdict) error {
	switch v {
	case checker.Safe:
		return nil
	case checker.Unsafe:
		return &codeError{code: exitUnsafe}
	}
	return &codeError{code: exitInconclusive}
}
