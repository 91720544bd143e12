package process

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/cluster"
)

// shimSource makes a server read its wall clock from a page of memory that the
// harness writes. libfaketime can do the same and is not used: as Debian ships
// it, redis-server does not start with it (wolfcw/libfaketime#130), and a change
// of pace with it is a jump as well.
//
//go:embed shim/skew.c
var shimSource []byte

// shimWait is how long the compiler may take; it takes a tenth of a second.
const shimWait = 30 * time.Second

// MissingClocks is what this machine lacks in order to set servers' clocks; ""
// if nothing.
func MissingClocks() string {
	if runtime.GOOS != "linux" {
		return "clocks of servers are set by a preloaded library, which needs Linux"
	}
	if _, err := compiler(); err != nil {
		return fmt.Sprintf("a C compiler builds the library that sets servers' clocks, and there is none (%v): "+
			"Debian, Ubuntu: apt-get install gcc libc6-dev", err)
	}
	return ""
}

func compiler() (string, error) {
	for _, name := range []string{"cc", "gcc"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return exec.LookPath("clang")
}

// buildShim compiles the library into the run's folder.
func (c *Cluster) buildShim(ctx context.Context) error {
	if why := MissingClocks(); why != "" {
		return fmt.Errorf("%w: %s", cluster.ErrEnvironment, why)
	}
	cc, err := compiler()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, shimWait)
	defer cancel()
	source := filepath.Join(c.data, "skew.c")
	if err := os.WriteFile(source, shimSource, 0o644); err != nil {
		return err
	}
	shim := filepath.Join(c.data, "skew.so")
	out, err := exec.CommandContext(ctx, cc, "-O2", "-shared", "-fPIC", "-o", shim, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the library that sets servers' clocks: %w: %w: %s", cluster.ErrEnvironment, err, out)
	}
	for _, s := range c.nodes {
		s.page = filepath.Join(s.dir, "clock")
		if err := os.WriteFile(s.page, make([]byte, pageSize), 0o644); err != nil {
			return err
		}
		s.env = []string{"LD_PRELOAD=" + shim, "LOCKCHAOS_CLOCK=" + s.page}
	}
	return nil
}

// The page as shim/skew.c reads it: which slot counts, and two slots of three
// numbers each.
const (
	wordSize = 8
	slotSize = 3 * wordSize
	pageSize = wordSize + 2*slotSize
)

// SetClock has the wall clock of node jump. It returns when the node answers
// TIME with the new time; one that does not run finds it when it starts.
func (c *Cluster) SetClock(ctx context.Context, node string, clock cluster.Clock) error {
	s, err := c.server(node)
	if err != nil {
		return fmt.Errorf("setting the clock of %w", err)
	}
	if s.page == "" {
		return fmt.Errorf("setting the clock of %s: %w: the servers were started without clocks of their own",
			node, cluster.ErrEnvironment)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := writeClock(s.page, clock); err != nil {
		return fmt.Errorf("setting the clock of %s: %w", node, err)
	}
	if !s.up() {
		return nil
	}
	err = poll(ctx, func() string {
		ahead, err := s.ahead(ctx)
		if off := (ahead - clock.Offset).Abs(); err == nil && off > clockError {
			return fmt.Sprintf("its clock is %v ahead, not %v", ahead, clock.Offset)
		}
		return message(err)
	})
	if err != nil {
		return fmt.Errorf("setting the clock of %s: %w", node, err)
	}
	return nil
}

// clockError is how far off TIME may be: the time that the answer takes, and
// what a drift has made since the jump.
const clockError = 250 * time.Millisecond

// ahead is how far the clock of s is ahead of this machine's.
func (s *server) ahead(ctx context.Context) (time.Duration, error) {
	replies, err := s.admin.ask(ctx, []string{"TIME"})
	if err != nil {
		return 0, err
	}
	now := time.Now()
	words, _ := replies[0].([]any)
	if len(words) != 2 {
		return 0, fmt.Errorf("reading %v as a time: %w", replies[0], errProtocol)
	}
	seconds, err1 := strconv.ParseInt(fmt.Sprint(words[0]), 10, 64)
	micros, err2 := strconv.ParseInt(fmt.Sprint(words[1]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("reading %v as a time: %w", replies[0], errProtocol)
	}
	return time.Unix(seconds, micros*1000).Sub(now.Round(0)), nil
}

// writeClock writes the slot that is not in force, and then puts it in force:
// who reads meanwhile reads the one or the other, and nothing between.
func writeClock(path string, clock cluster.Clock) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
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
	for _, v := range []int64{time.Now().UnixNano(), int64(clock.Offset), int64(clock.Drift * float64(time.Second))} {
		slot = binary.NativeEndian.AppendUint64(slot, uint64(v))
	}
	if _, err := f.WriteAt(slot, wordSize+int64(next)*slotSize); err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, next), 0)
	return err
}
