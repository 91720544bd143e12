//go:build !linux

package lossydisk

import (
	"errors"
	"time"
)

var errUnsupported = errors.New("a disk that loses unsynced writes needs Linux, FUSE and root")

// Disk is one mounted file system. It exists on Linux only.
type Disk struct{}

// Missing describes the missing parts of this machine.
func Missing() string { return errUnsupported.Error() }

// Mount is not supported here.
func Mount(string, string) (*Disk, error) { return nil, errUnsupported }

// Cut is not supported here.
func (*Disk) Cut() (int64, error) { return 0, errUnsupported }

// Sync is not supported here.
func (*Disk) Sync() error { return errUnsupported }

// Slow is not supported here.
func (*Disk) Slow(time.Duration) {}

// Slowed is not supported here.
func (*Disk) Slowed() int { return 0 }

// Abandon is not supported here.
func (*Disk) Abandon() (end func()) { return func() {} }

// Close does nothing.
func (*Disk) Close() error { return nil }
