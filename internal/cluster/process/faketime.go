package process

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// faketime is a server's clock in the hands of libfaketime. It reads a file at
// every look at the clock, which costs half of a server's throughput. Two traps:
// redis-server as Debian builds it does not start with it alone, because
// jemalloc asks for the time before the library is ready (wolfcw/libfaketime#130),
// and does with the C library preloaded behind it, whose malloc it takes then;
// and the monotonic clock must be left alone, or a jump back stops its event loop.
type faketime struct {
	file    string // what the library reads
	started time.Time
	was     time.Time // when clock was set
	clock   cluster.Clock
}

// findFaketime looks for the library, and for the C library that is preloaded behind it.
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
		return "", "", "libfaketime is not here (Debian, Ubuntu: apt-get install libfaketime)"
	case libc == "":
		return "", "", "the C library is not where it is known to be, and libfaketime does not start redis-server without it"
	}
	return lib, libc, ""
}

// fitFaketime gives every node a clock of libfaketime.
func (c *Cluster) fitFaketime() error {
	lib, libc, missing := findFaketime()
	if missing != "" {
		return fmt.Errorf("%w: %s", cluster.ErrEnvironment, missing)
	}
	for _, s := range c.nodes {
		file := filepath.Join(s.dir, "faketime")
		s.clock = &faketime{file: file}
		s.env = []string{
			"LD_PRELOAD=" + lib + ":" + libc, "FAKETIME_TIMESTAMP_FILE=" + file, "FAKETIME_NO_CACHE=1",
			"DONT_FAKE_MONOTONIC=1",
		}
	}
	return nil
}

func (f *faketime) set(clock cluster.Clock, now time.Time) error {
	f.clock, f.was = clock, now
	return f.write()
}

func (f *faketime) begins(now time.Time) error {
	f.started = now
	if f.was.IsZero() {
		f.was = now
	}
	return f.write()
}

// startup is far longer than a server takes from its launch until its clock counts.
const startup = 2 * time.Second

func (*faketime) vague() time.Duration { return startup }

// write says the clock in the library's words. A pace counts from the start of
// the process there, and here from when the clock was set: the offset makes up for it.
func (f *faketime) write() error {
	offset := f.clock.Offset.Seconds() + f.started.Sub(f.was).Seconds()*f.clock.Drift
	next := f.file + ".next"
	text := fmt.Sprintf("%+.6f x%.6f\n", offset, 1+f.clock.Drift)
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(next, f.file) // the library never reads half of it
}

func (*faketime) ended(pid int) { ledger.RemoveFaketime(pid) }
