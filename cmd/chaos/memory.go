package main

import (
	"fmt"
	"syscall"
)

// leastAddressSpace is the smallest limit on the address space with which this program can be expected to run: the Go
// runtime reserves most of it before it starts, and the C library an arena for each of several threads. With 1.5 GB it
// aborts now and then, also before main, where nothing can choose the exit code: it is 2, which otherwise means
// inconclusive. A run on real servers needs more, see package internal/backend/servers.
const leastAddressSpace = 2 << 30

// checkMemory refuses a limit on the address space with which the Go runtime would abort in the middle of a command.
func checkMemory() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil || limit.Cur >= leastAddressSpace {
		return nil //nolint:nilerr // where there is no such limit, it is not too small
	}
	return &codeError{exitEnvironment, fmt.Errorf("the address space is limited to %d KB: chaos needs %d KB (ulimit -v)",
		limit.Cur>>10, leastAddressSpace>>10)}
}
