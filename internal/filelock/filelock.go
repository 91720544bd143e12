// Package filelock locks files between programs (flock). The kernel releases a lock when its owner closes the file or
// exits, also if it is killed; children do not inherit it, because Go opens files close-on-exec.
package filelock

import "os"

// Try locks f if no other program has it locked, and reports whether it did. The error wraps [errors.ErrUnsupported]
// if the system or the file system has no such locks.
func Try(f *os.File) (locked bool, err error) { return try(f) }

// Wait locks f as soon as no other program has it locked. The errors are those of [Try].
func Wait(f *os.File) error { return wait(f) }
