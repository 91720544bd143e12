// Package filelock locks files between programs (flock). The kernel releases a lock when its owner closes the file or
// exits, also if it is killed; children do not inherit it, because Go opens files close-on-exec.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Try locks f if no other program has it locked, and reports whether it did. The error wraps [errors.ErrUnsupported]
// if the system or the file system has no such locks.
func Try(f *os.File) (locked bool, err error) {
	locked, err = try(f)
	return locked, unsupported(err)
}

// Wait locks f as soon as no other program has it locked. The errors are as of [Try].
func Wait(f *os.File) error { return unsupported(wait(f)) }

// unsupported marks ENOLCK, the error of NFS without a lock server, as one of a file system without locks.
func unsupported(err error) error {
	if errors.Is(err, syscall.ENOLCK) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}
