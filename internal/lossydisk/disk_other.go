//go:build !linux

package lossydisk

import "errors"

// errUnsupported is the error where there is no FUSE.
var errUnsupported = errors.New("a disk that forgets needs Linux, FUSE and root")

// Disk is one mounted file system. Where there is no Linux it cannot be had.
type Disk struct{}

// Missing is what this machine lacks.
func Missing() string { return errUnsupported.Error() }

// Mount cannot mount.
func Mount(string, string) (*Disk, error) { return nil, errUnsupported }

// Cut has nothing to forget.
func (*Disk) Cut() (int64, error) { return 0, errUnsupported }

// Close has nothing to unmount.
func (*Disk) Close() error { return nil }
