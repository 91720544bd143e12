package ledger

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
)

// endWait is how long a sweep waits for a process that got SIGKILL.
const endWait = 5 * time.Second

// Report is what a sweep found and did.
type Report struct {
	Swept   []Swept  // runs that were gone, and what they had left behind
	Running []string // runs that are alive, left alone
	Orphans []string // containers and networks that no ledger knew of, which whoever asked for the sweep has removed
}

// String is the report for people, a line for each run.
func (r Report) String() string {
	var b strings.Builder
	for _, s := range r.Swept {
		fmt.Fprintf(&b, "%s: ended %d processes, removed %d folders%s\n", s.Run, len(s.Killed), len(s.Removed), s.mounts())
		for _, f := range s.Failed {
			fmt.Fprintf(&b, "  not done: %s\n", f)
		}
	}
	for _, name := range r.Running {
		fmt.Fprintf(&b, "%s: is running, left alone\n", name)
	}
	if len(r.Orphans) > 0 {
		fmt.Fprintf(&b, "without a ledger: removed %s\n", strings.Join(r.Orphans, ", "))
	}
	if b.Len() == 0 {
		return "nothing was left behind\n"
	}
	return b.String()
}

// Swept is one dead run.
type Swept struct {
	Run       string   // name of its ledger
	Killed    []int    // processes ended
	Removed   []string // folders and shared memory removed
	Unmounted []string // mounts taken out of the tree
	Unlinked  []string // network namespaces and devices removed
	Contained []string // containers and networks removed from an engine
	Failed    []string // what could not be done, and why; the ledger is kept then
}

// mounts is mounts, containers and networks for people, nothing if there were none.
func (s Swept) mounts() (text string) {
	if len(s.Unmounted) > 0 {
		text += fmt.Sprintf(", unmounted %d disks", len(s.Unmounted))
	}
	if len(s.Unlinked) > 0 {
		text += fmt.Sprintf(", removed %d network namespaces and devices", len(s.Unlinked))
	}
	if len(s.Contained) > 0 {
		text += fmt.Sprintf(", removed %d containers and networks", len(s.Contained))
	}
	return text
}

// Containers removes the containers and networks of a dead run at an engine, and
// says what they were. The packages that make them bring it.
type Containers func(ctx context.Context, engine, run string) (removed []string, err error)

// Sweep ends what dead runs of this user have left behind: processes that are
// still exactly those that the run had started, and folders. It leaves running
// runs alone. Several sweeps may be at work at once. The error is about the
// sweep as a whole; what went wrong with one run is in the report.
func Sweep(ctx context.Context, containers Containers) (Report, error) {
	var report Report
	root, err := folder()
	if err != nil {
		return report, fmt.Errorf("sweeping: %w", err)
	}
	defer os.Remove(root) // if it is empty; not an error if it is not
	paths, err := filepath.Glob(filepath.Join(root, "*"+suffix))
	if err != nil {
		return report, fmt.Errorf("sweeping %s: %w", root, err)
	}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return report, fmt.Errorf("sweeping %s: %w", root, err)
		}
		if err := sweepOne(ctx, path, containers, &report); err != nil {
			return report, fmt.Errorf("sweeping %s: %w", path, err)
		}
	}
	return report, nil
}

func sweepOne(ctx context.Context, path string, containers Containers, report *Report) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // its run, or another sweep, was quicker
	}
	if err != nil {
		return err
	}
	defer file.Close()
	name := runOf(path)
	free, err := lock(file)
	if err != nil {
		return err
	}
	if !free {
		report.Running = append(report.Running, name)
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil // another sweep has just finished it
	}
	entries, err := read(file)
	if err != nil {
		return err
	}
	swept := Swept{Run: name}
	uncontain(ctx, entries, containers, &swept) // first: servers in them write to the folders
	undo(ctx, entries, &swept)
	report.Swept = append(report.Swept, swept)
	if len(swept.Failed) > 0 {
		return nil
	}
	return os.Remove(path)
}

// read reads a ledger. A torn line is skipped: whoever wrote it was killed.
func read(file *os.File) ([]entry, error) {
	var entries []entry
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries, lines.Err()
}

// undo ends the processes first: a folder in use fills up again.
func undo(ctx context.Context, entries []entry, swept *Swept) {
	boot := bootID()
	sameBoot := len(entries) > 0 && entries[0].Boot == boot
	for _, e := range append(entries, marked(swept.Run)...) {
		if e.PID <= 0 || !sameBoot {
			continue
		}
		killed, err := end(ctx, e)
		if err != nil {
			swept.Failed = append(swept.Failed, err.Error())
		}
		if killed {
			swept.Killed = append(swept.Killed, e.PID)
		}
	}
	if sameBoot {
		for _, e := range entries {
			swept.Removed = append(swept.Removed, sharedMemory(e)...)
		}
	}
	unlink(ctx, entries, swept) // when no process is left in them
	for _, e := range entries {
		if e.Mount == "" || !removable(e.Mount) {
			continue
		}
		gone, err := unmount(e.Mount) // before its folder goes: nothing can be removed through a dead mount
		if err != nil {
			swept.Failed = append(swept.Failed, fmt.Sprintf("unmounting %s: %v", e.Mount, err))
		}
		if gone {
			swept.Unmounted = append(swept.Unmounted, e.Mount)
		}
	}
	for _, e := range entries {
		if e.Dir == "" || !removable(e.Dir) {
			continue
		}
		if _, err := os.Lstat(e.Dir); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.RemoveAll(e.Dir); err != nil {
			swept.Failed = append(swept.Failed, err.Error())
			continue
		}
		swept.Removed = append(swept.Removed, e.Dir)
	}
}

// unlink removes the network namespaces and bridges that are still there, and each
// namespace's cable, which has its name: with the namespace it would go too, but later.
func unlink(ctx context.Context, entries []entry, swept *Swept) {
	remove := func(name, path string, args ...string) {
		if !ourNetwork.MatchString(name) {
			return
		}
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, endWait)
		defer cancel()
		if out, err := exec.CommandContext(ctx, "ip", append(args, name)...).CombinedOutput(); err != nil {
			swept.Failed = append(swept.Failed, fmt.Sprintf("ip %s %s: %v %s", strings.Join(args, " "), name, err,
				bytes.TrimSpace(out)))
			return
		}
		swept.Unlinked = append(swept.Unlinked, name)
	}
	for _, e := range entries {
		remove(e.Netns, "/sys/class/net/"+e.Netns, "link", "delete")
		remove(e.Netns, "/run/netns/"+e.Netns, "netns", "delete")
		remove(e.Bridge, "/sys/class/net/"+e.Bridge, "link", "delete")
	}
}

// uncontain has the containers removed that the run had, at every engine that it wrote down.
func uncontain(ctx context.Context, entries []entry, containers Containers, swept *Swept) {
	for _, e := range entries {
		if e.Engine == "" {
			continue
		}
		if containers == nil {
			swept.Failed = append(swept.Failed, "the run has containers at "+e.Engine+": chaos clean removes them")
			continue
		}
		removed, err := containers(ctx, e.Engine, swept.Run)
		swept.Contained = append(swept.Contained, removed...)
		if err != nil {
			swept.Failed = append(swept.Failed, err.Error())
		}
	}
}

// shared is where Linux has what processes share by name.
const shared = "/dev/shm"

// sharedMemory removes what libfaketime leaves behind of a process that was
// killed, unless another process has its number now.
func sharedMemory(e entry) (removed []string) {
	if e.PID <= 0 {
		return nil
	}
	if state, _, err := child.Stat(e.PID); err == nil && state != 'Z' && state != 'X' {
		return nil
	}
	for _, name := range []string{"faketime_shm_%d", "sem.faketime_sem_%d"} {
		path := filepath.Join(shared, fmt.Sprintf(name, e.PID))
		if os.Remove(path) == nil {
			removed = append(removed, path)
		}
	}
	return removed
}

// end kills the process of e if it still is that process. The handle is opened
// before the start time is compared: on Linux it is a pidfd, which stays with
// the process that it was opened for, so nobody else can be hit. SIGKILL also
// ends a process that stands still (signal(7)); it needs no SIGCONT before.
func end(ctx context.Context, e entry) (bool, error) {
	proc, err := os.FindProcess(e.PID)
	if err != nil {
		return false, nil
	}
	defer proc.Release()
	if !alive(e) {
		return false, nil
	}
	if err := proc.Kill(); errors.Is(err, os.ErrProcessDone) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("killing process %d: %w", e.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	for alive(e) {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("killing process %d: still there: %w", e.PID, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return true, nil
}

// alive says whether the very process of e is there and not merely unreaped.
func alive(e entry) bool {
	state, started, err := child.Stat(e.PID)
	return err == nil && started == e.Started && state != 'Z' && state != 'X'
}
