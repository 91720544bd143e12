package process

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

// findFaketime finds the library, and the C library to preload after it.
func findFaketime() (lib, libc, missing string) {
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

// addFaketime preloads libfaketime in every node.
func (c *Cluster) addFaketime() error {
	lib, libc, missing := findFaketime()
	if missing != "" {
		return fmt.Errorf("%w: %s", cluster.ErrEnvironment, missing)
	}
	for _, s := range c.nodes {
		file := filepath.Join(s.dir, "faketime")
		s.clock = &faketime{file: file}
		s.env = []string{
			preload + lib + ":" + libc, "FAKETIME_TIMESTAMP_FILE=" + file, "FAKETIME_NO_CACHE=1",
			"DONT_FAKE_MONOTONIC=1",
		}
	}
	return nil
}

func (f *faketime) set(clock cluster.Clock, now time.Time) error {
	f.clock, f.setAt = clock, now
	return f.write()
}

func (f *faketime) starting(now time.Time) error {
	f.started = now
	if f.setAt.IsZero() {
		f.setAt = now
	}
	return f.write()
}

// faketimeStartup is far longer than a server takes from its launch until its clock drifts.
const faketimeStartup = 2 * time.Second

func (*faketime) startUncertainty() time.Duration { return faketimeStartup }

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

func (*faketime) exited(pid int) { ledger.RemoveFaketime(pid) }
