package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/runner"
)

// Exit codes; the root command's help has the same list.
const (
	exitSafe         = 0
	exitUnsafe       = 1
	exitInconclusive = 2
	exitUsage        = 64
	exitEnvironment  = 69
	exitInternal     = 70
	exitInterrupted  = 130
	exitBrokenPipe   = 141 // what a shell shows for SIGPIPE
)

const exitHelp = `Exit codes:
  0    safe (with --expect: as the scenario expects)
  1    unsafe (with --expect: not as the scenario expects)
  2    inconclusive: the run tested too little to say
  64   the command line or a scenario is wrong
  69   the environment is wrong: no redis-server, no permission, disk full, or a
       client of your own that cannot be set up
  70   chaos itself failed
  130  interrupted
  141  nobody reads the output any more (a run ends, and writes its report, all the same)`

// codeError is an error with the exit code that it ends the program with. A
// nil err ends it without a word.
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

// exitCode says what is wrong, and with which code to end.
func exitCode(err error, io streams) int {
	if err == nil {
		return exitSafe
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitBrokenPipe // nobody reads; there is nothing to say and nobody to say it to
	}
	var coded *codeError
	if errors.As(err, &coded) {
		if coded.err != nil {
			noteAll(coded.err, io)
		}
		return coded.code
	}
	noteAll(err, io)
	switch {
	case errors.Is(err, runner.ErrInterrupted):
		return exitInterrupted
	case errors.Is(err, cluster.ErrOption):
		return exitUsage
	case environmental(err):
		return exitEnvironment
	}
	return exitInternal
}

// noteAll prints each of the errors that errors.Join has put together with the program's name.
func noteAll(err error, io streams) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var texts []string
		for _, one := range joined.Unwrap() {
			texts = append(texts, one.Error())
		}
		if strings.Join(texts, "\n") == err.Error() { // not one sentence of fmt.Errorf with several causes
			for _, one := range joined.Unwrap() {
				noteAll(one, io)
			}
			return
		}
	}
	io.note("chaos: %v", err)
}

// environmental errors are those that no change of chaos would mend.
func environmental(err error) bool {
	for _, cause := range []error{
		cluster.ErrEnvironment, exec.ErrNotFound, fs.ErrPermission, fs.ErrNotExist, syscall.ENOSPC, syscall.EADDRINUSE,
		syscall.ENOTDIR, syscall.EROFS, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE,
		client.ErrExited, client.ErrProtocol, client.ErrTimeout, // a client that cannot even be set up
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// verdictCode is the exit code of a judgement.
func verdictCode(v checker.Verdict) error {
	switch v {
	case checker.Safe:
		return nil
	case checker.Unsafe:
		return &codeError{code: exitUnsafe}
	}
	return &codeError{code: exitInconclusive}
}
