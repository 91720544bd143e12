//go:build unix

package runner

import "golang.org/x/sys/unix"

// maxFiles is how many files this process may have open, 0 if nobody knows. Go
// has raised it as far as it goes (golang/go#46279).
func maxFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur)
}
