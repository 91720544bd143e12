package process

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// shimSource is a library that makes a server read its wall clock from a page of
// memory that the harness writes. libfaketime costs half of the throughput, and is
// used only where there is no compiler: see faketime.
//
//go:embed shim/skew.c
var shimSource []byte

// Shim is the name of the library in a server's directory.
const Shim = "skew.so"
const preload = "LD_PRELOAD="

// shimWait bounds the compiler, which takes 0.1 s.
const shimWait = 30 * time.Second

func compiler() (string, error) {
	for _, name := range []string{"cc", "gcc"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return exec.LookPath("clang")
}

// buildShim compiles the library into the run's directory.
func (c *Cluster) buildShim(ctx context.Context, cc string) error {
	ctx, cancel := context.WithTimeout(ctx, shimWait)
	defer cancel()
	source := filepath.Join(c.data, "skew.c")
	if err := os.WriteFile(source, shimSource, 0o644); err != nil {
		return err
	}
	shim := filepath.Join(c.data, Shim)
	compiler := exec.CommandContext(ctx, cc, "-O2", "-shared", "-fPIC", "-o", shim, source, "-ldl")
	compiler.Env = append(os.Environ(), "TMPDIR="+c.data) // a killed compiler leaves its temporary files
	out, err := compiler.CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the library that sets servers' clocks: %w: %w: %s", cluster.ErrEnvironment, err, out)
	}
	for _, s := range c.nodes {
		page := pageClock(filepath.Join(s.dir, "clock"))
		if err := os.WriteFile(string(page), make([]byte, pageSize), 0o644); err != nil {
			return err
		}
		s.clock = page
		own := filepath.Join(s.dir, Shim) // a server in a container sees only its own directory
		if err := os.Link(shim, own); err != nil {
			return err
		}
		s.env = append(s.env, preload+s.inside(own), "LOCKCHAOS_CLOCK="+s.inside(string(page)))
	}
	return nil
}

// ofClock reports whether a variable of the environment names the library.
func ofClock(variable string) bool { return strings.HasPrefix(variable, preload) }

// pageClock is the page of memory, a file, that one server reads its clock from.
type pageClock string

func (pageClock) starting(time.Time) error        { return nil }
func (pageClock) startUncertainty() time.Duration { return 0 }
func (pageClock) exited(int)                      {}

// The layout of the page, as in shim/skew.c: the index of the current slot, and two
// slots of three numbers each.
const (
	wordSize = 8
	slotSize = 3 * wordSize
	pageSize = wordSize + 2*slotSize
)

// set writes the other slot and then makes it current, so that a concurrent reader
// sees the old or the new clock.
func (p pageClock) set(clock cluster.Clock, now time.Time) error {
	f, err := os.OpenFile(string(p), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	which := make([]byte, wordSize)
	if _, err := f.ReadAt(which, 0); err != nil {
		return err
	}
	next := 1 - binary.NativeEndian.Uint64(which)&1
	var slot []byte
	for _, v := range []int64{now.UnixNano(), int64(clock.Offset), int64(clock.Drift * float64(time.Second))} {
		slot = binary.NativeEndian.AppendUint64(slot, uint64(v))
	}
	if _, err := f.WriteAt(slot, wordSize+int64(next)*slotSize); err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, next), 0)
	return err
}
