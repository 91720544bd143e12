package wallclock

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// faketime sets a server's clock with libfaketime, which reads a file whenever the
// server reads the clock; that costs half of the server's throughput. Two pitfalls:
// Debian's redis-server does not start with it alone, because jemalloc reads the clock before the library is
// initialized (wolfcw/libfaketime#130); with the C library preloaded after it, malloc is the C library's. And the
// monotonic clock must not be faked, or a jump back stops the server's event loop.
type faketime struct {
	file    string // that the library reads
	started time.Time
	setAt   time.Time // when clock was set
	clock   cluster.Clock
}

// FindFaketime finds the library, and the C library to preload after it.
func FindFaketime() (lib, libc, missing string) {
	first := func(patterns ...string) string {
		for _, pattern := range patterns {
			if found, _ := filepath.Glob(pattern); len(found) > 0 {
				return found[0]
			}
		}
		return ""
	}
	lib = first("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1")
	libc = first("/lib/*/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6")
	switch {
	case lib == "":
		return "", "", "libfaketime not found (Debian, Ubuntu: apt-get install libfaketime)"
	case libc == "":
		return "", "", "libc.so.6 not found, which redis-server needs to start with libfaketime"
	}
	return lib, libc, ""
}

// Faketime is the clock of a server with that directory, and the environment in which libfaketime sets it.
func Faketime(dir string) (Clock, []string, error) {
	lib, libc, missing := FindFaketime()
	if missing != "" {
		return nil, nil, fmt.Errorf("%w: %s", cluster.ErrEnvironment, missing)
	}
	file := filepath.Join(dir, "faketime")
	return &faketime{file: file}, []string{
		preload + lib + ":" + libc, "FAKETIME_TIMESTAMP_FILE=" + file, "FAKETIME_NO_CACHE=1", "DONT_FAKE_MONOTONIC=1",
	}, nil
}

func (f *faketime) Set(clock cluster.Clock, now time.Time) error {
	f.clock, f.setAt = clock, now
	return f.write()
}

func (f *faketime) Starting(now time.Time) error {
	f.started = now
	if f.setAt.IsZero() {
		f.setAt = now
	}
	return f.write()
}

// faketimeStartup is far longer than a server takes from its launch until its clock drifts.
const faketimeStartup = 2 * time.Second

func (*faketime) StartUncertainty() time.Duration { return faketimeStartup }

// write writes the clock in the library's format. Its drift counts from the start
// of the process, ours from when the clock was set: the offset corrects for that.
func (f *faketime) write() error {
	offset := f.clock.Offset.Seconds() + f.started.Sub(f.setAt).Seconds()*f.clock.Drift
	next := f.file + ".next"
	text := fmt.Sprintf("%+.6f x%.6f\n", offset, 1+f.clock.Drift)
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(next, f.file) // atomic for the library
}

func (*faketime) Exited(pid int) { ledger.RemoveFaketime(pid) }
