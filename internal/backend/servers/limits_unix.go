//go:build unix

package servers

import "golang.org/x/sys/unix"

// maxFiles is the limit of open files, which Go has raised as far as possible (golang/go#46279); 0 if it is unknown.
func maxFiles() uint64 { return limitOf(unix.RLIMIT_NOFILE) }

// maxMemory is the limit of the address space, in bytes; 0 if it is unknown.
func maxMemory() uint64 { return limitOf(unix.RLIMIT_AS) }

func limitOf(resource int) uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(resource, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // int64 on FreeBSD
}
