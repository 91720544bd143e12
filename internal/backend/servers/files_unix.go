//go:build unix

package servers

import "golang.org/x/sys/unix"

// maxFiles is the limit of open files, which Go has raised as far as possible (golang/go#46279); 0 if it is unknown.
func maxFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // int64 on FreeBSD
}
