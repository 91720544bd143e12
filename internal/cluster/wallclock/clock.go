// Package wallclock sets the wall clocks of server processes with a preloaded library.
//
// Read [Clock] first. [Compile] and [Preload] need a C compiler, [Faketime] does not.
package wallclock

import (
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Clock sets the wall clock of one server. Its methods are called by one goroutine at a time.
type Clock interface {
	// Set makes the clock jump now, also if the server is not running.
	Set(clock cluster.Clock, now time.Time) error
	// Starting is called before each start of the server.
	Starting(now time.Time) error
	// StartUncertainty is how much later than Starting the clock may begin to drift.
	StartUncertainty() time.Duration
	// Exited is called when the process has exited.
	Exited(pid int)
}

// Missing describes the missing parts of this machine for setting servers' clocks; "": none.
func Missing() string {
	_, missing := Method()
	return missing
}

// Method describes how servers' clocks are set on this machine, or the missing parts.
func Method() (method, missing string) {
	if runtime.GOOS != "linux" {
		return "", "clocks of servers are set by a preloaded library, which needs Linux"
	}
	path, err := Compiler()
	if err == nil {
		return "a library built with " + path, ""
	}
	if lib, _, why := FindFaketime(); why == "" {
		return lib + " (slower than the library that a C compiler would build)", ""
	}
	return "", fmt.Sprintf("setting servers' clocks needs a C compiler (%v) or libfaketime: "+
		"Debian, Ubuntu: apt-get install gcc libc6-dev, or libfaketime", err)
}

// Compiler is the path of a C compiler.
func Compiler() (string, error) {
	for _, name := range []string{"cc", "gcc"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return exec.LookPath("clang")
}
