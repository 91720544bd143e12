package wallclock

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

// librarySource makes a server read its wall clock from a page of memory that the harness writes. libfaketime costs
// half of the throughput, and is used only where there is no compiler: see faketime.
//
//go:embed shim/skew.c
var librarySource []byte

// Library is the name of the library in a server's directory.
const Library = "skew.so"
const preload = "LD_PRELOAD="

// compileWait bounds the compiler, which takes 0.1 s.
const compileWait = 30 * time.Second

// Compile compiles the library into dir with the compiler cc and returns its path.
func Compile(ctx context.Context, cc, dir string) (library string, err error) {
	ctx, cancel := context.WithTimeout(ctx, compileWait)
	defer cancel()
	source := filepath.Join(dir, "skew.c")
	if err := os.WriteFile(source, librarySource, 0o644); err != nil {
		return "", err
	}
	library = filepath.Join(dir, Library)
	compiler := exec.CommandContext(ctx, cc, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl")
	compiler.Env = append(os.Environ(), "TMPDIR="+dir) // a killed compiler leaves its temporary files
	out, err := compiler.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building the library that sets servers' clocks: %w: %w: %s", cluster.ErrEnvironment, err, out)
	}
	return library, err
}

// Preload is the clock of a server with that directory, and the environment in which it loads the library. A server in
// a container sees only its own directory; inside is a path there as the server sees it.
func Preload(library, dir string, inside func(path string) string) (Clock, []string, error) {
	page := pageClock(filepath.Join(dir, "clock"))
	if err := os.WriteFile(string(page), make([]byte, pageSize), 0o644); err != nil {
		return nil, nil, err
	}
	own := filepath.Join(dir, Library)
	if err := os.Link(library, own); err != nil {
		return nil, nil, err
	}
	return page, []string{preload + inside(own), "LOCKCHAOS_CLOCK=" + inside(string(page))}, nil
}

// Variable reports whether a variable of a server's environment preloads a library that sets its clock.
func Variable(variable string) bool { return strings.HasPrefix(variable, preload) }

// pageClock is the page of memory, a file, that one server reads its clock from.
type pageClock string

func (pageClock) Starting(time.Time) error        { return nil }
func (pageClock) StartUncertainty() time.Duration { return 0 }
func (pageClock) Exited(int)                      {}

// The layout of the page, as in shim/skew.c: the index of the current slot, and two
// slots of three numbers each.
const (
	wordSize = 8
	slotSize = 3 * wordSize
	pageSize = wordSize + 2*slotSize
)

// Set writes the other slot and then makes it current, so that a concurrent reader
// sees the old or the new clock.
func (p pageClock) Set(clock cluster.Clock, now time.Time) error {
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
