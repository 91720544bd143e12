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
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/format"
)

// endWait is how long a sweep waits for a process that got SIGKILL, and for the command ip.
const endWait = 5 * time.Second

// Report has the findings and actions of a sweep.
type Report struct {
	Swept   []Swept  `json:"swept"`   // dead runs, and their leftovers
	Running []string `json:"running"` // live runs, not touched
	Orphans []string `json:"orphans"` // removed although in no ledger: data directories, containers, networks
}

// String is the report for people, a line for each run; empty if there is nothing to report.
func (r Report) String() string {
	var b strings.Builder
	for _, s := range r.Swept {
		fmt.Fprintf(&b, "%s: %s\n", s.Run, s.summary())
		for _, f := range s.Failed {
			fmt.Fprintf(&b, "  failed: %s\n", f)
		}
	}
	for _, name := range r.Running {
		fmt.Fprintf(&b, "%s: still running, not touched\n", name)
	}
	if len(r.Orphans) > 0 {
		fmt.Fprintf(&b, "without a ledger: removed %s\n", strings.Join(r.Orphans, ", "))
	}
	return b.String()
}

// Swept is one dead run.
type Swept struct {
	Run        string   `json:"run"`                  // name of its ledger
	Killed     []int    `json:"killed,omitempty"`     // processes killed
	Removed    []string `json:"removed,omitempty"`    // directories and shared memory removed
	Unmounted  []string `json:"unmounted,omitempty"`  // mounts removed
	Networks   []string `json:"networks,omitempty"`   // network namespaces and devices removed
	Containers []string `json:"containers,omitempty"` // containers and their networks removed from an engine
	Failed     []string `json:"failed,omitempty"`     // failures, with their reasons; the ledger is kept then
}

// summary is the counts for people: the main ones always, others if not zero.
func (s Swept) summary() string {
	text := "killed " + format.Count(len(s.Killed), "process") + ", removed " + format.Count(len(s.Removed), "directory")
	for _, more := range []struct {
		count int
		text  string
	}{
		{len(s.Unmounted), "unmounted " + format.Count(len(s.Unmounted), "disk")},
		{len(s.Networks), "removed " + format.Count(len(s.Networks), "network device")},
		{len(s.Containers), "removed " + format.Count(len(s.Containers), "Docker object")},
	} {
		if more.count > 0 {
			text += ", " + more.text
		}
	}
	return text
}

func (s *Swept) failed(text string, args ...any) {
	s.Failed = append(s.Failed, fmt.Sprintf(text, args...))
}

// RemoveContainers removes the containers and networks of a dead run from an
// engine, and returns their names.
type RemoveContainers func(ctx context.Context, engine, run string) (removed []string, err error)

// Sweep removes the leftovers of dead runs of this user: processes with the identity that the run recorded, containers,
// networks, mounts and directories, and data directories whose ledger is gone. Live runs are not touched. Sweeps may
// run concurrently. The error names ledgers and data directories that could not be read, beside which the others were
// swept; failures for one run are in the report.
func Sweep(ctx context.Context, containers RemoveContainers) (Report, error) {
	var report Report
	var errs []error
	paths, err := ledgers()
	if err == nil {
		defer os.Remove(Root()) // fails, as it should, if it is not empty
	}
	errs = append(errs, err)
	for _, path := range paths {
		if ctx.Err() != nil {
			break
		}
		if err := report.sweep(ctx, path, containers); err != nil {
			errs = append(errs, err)
			report.Swept = append(report.Swept, Swept{Run: runOf(path), Failed: []string{err.Error()}})
		}
	}
	report.Orphans, err = sweepData(ctx)
	if err := errors.Join(append(errs, err, ctx.Err())...); err != nil {
		return report, fmt.Errorf("sweeping: %w", err)
	}
	return report, nil
}

// ledgers are the ledgers of this user, and files of ledgers that were never completed.
func ledgers() (paths []string, err error) {
	err = checkRoot()
	if err == nil {
		var entries []os.DirEntry
		entries, err = os.ReadDir(Root())
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), suffix) || strings.HasPrefix(e.Name(), newPrefix) {
				paths = append(paths, filepath.Join(Root(), e.Name()))
			}
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // there is no run
	}
	return paths, err
}

func (r *Report) sweep(ctx context.Context, path string, containers RemoveContainers) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // its run, or another sweep, has removed it
	}
	if err != nil {
		return err
	}
	defer file.Close()
	name := runOf(path)
	locked, err := lockOfDead(ctx, file, processOf(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !locked {
		r.Running = append(r.Running, name)
		return nil
	}
	entries, err := read(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if len(entries) == 0 { // the run was killed before it started anything, or has not locked its ledger yet
		return os.Remove(path)
	}
	swept := Swept{Run: name}
	swept.removeContainers(ctx, entries, containers) // first: servers in them write to the directories
	if entries[0].Boot == bootID() {
		swept.kill(ctx, entries) // before the directories: a live process fills them again
	}
	swept.removeNetworks(ctx, entries) // when no process is left in them
	swept.unmount(entries)             // before the directories: nothing can be removed through a dead mount
	swept.removeDirs(entries)
	r.Swept = append(r.Swept, swept)
	if len(swept.Failed) > 0 {
		return nil
	}
	return os.Remove(path)
}

// read reads a ledger. A partial line is skipped: its writer was killed.
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

// kill kills the processes in the ledger and the processes with the run's mark.
func (s *Swept) kill(ctx context.Context, entries []entry) {
	var processes []child.Identity
	for _, e := range entries {
		if e.PID > 0 {
			processes = append(processes, e.Identity)
		}
	}
	for _, id := range slices.Concat(processes, marked(s.Run)) {
		ctx, cancel := context.WithTimeout(ctx, endWait)
		killed, err := id.Kill(ctx)
		cancel()
		if err != nil {
			s.failed("%v", err)
		}
		if killed {
			s.Killed = append(s.Killed, id.PID)
		}
	}
	for _, id := range processes {
		if now, err := child.Stat(id.PID); err != nil || !now.Alive() { // else another process has the number
			s.Removed = append(s.Removed, RemoveFaketime(id.PID)...)
		}
	}
}

func (s *Swept) unmount(entries []entry) {
	for _, e := range entries {
		if e.Mount == "" || !removable(e.Mount) {
			continue
		}
		unmounted, err := unmount(e.Mount)
		if err != nil {
			s.failed("unmounting %s: %v", e.Mount, err)
		}
		if unmounted {
			s.Unmounted = append(s.Unmounted, e.Mount)
		}
	}
}

func (s *Swept) removeDirs(entries []entry) {
	for _, e := range entries {
		if e.Dir == "" || !removable(e.Dir) {
			continue
		}
		if _, err := os.Lstat(e.Dir); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.RemoveAll(e.Dir); err != nil {
			s.failed("%v", err)
			continue
		}
		s.Removed = append(s.Removed, e.Dir)
	}
}

func (s *Swept) removeNetworks(ctx context.Context, entries []entry) {
	for _, e := range entries {
		name := e.Netns + e.Bridge // an entry has one of them
		if !ourNetwork.MatchString(name) {
			continue
		}
		removed, err := RemoveNetwork(ctx, name)
		if err != nil {
			s.failed("%v", err)
		}
		if removed {
			s.Networks = append(s.Networks, name)
		}
	}
}

func (s *Swept) removeContainers(ctx context.Context, entries []entry, containers RemoveContainers) {
	for _, e := range entries {
		if e.Engine == "" {
			continue
		}
		if containers == nil {
			s.failed("the run has containers at %s: remove them with chaos clean", e.Engine)
			continue
		}
		removed, err := containers(ctx, e.Engine, s.Run)
		s.Containers = append(s.Containers, removed...)
		if err != nil {
			s.failed("%v", err)
		}
	}
}

// RemoveNetwork removes the network device and the namespace of that name that
// exist; removed is false if there was neither. (A device disappears with its
// namespace too, but later.)
func RemoveNetwork(ctx context.Context, name string) (removed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	for _, kind := range []struct{ object, dir string }{{"link", "/sys/class/net/"}, {"netns", "/run/netns/"}} {
		if _, err := os.Lstat(kind.dir + name); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if out, err := exec.CommandContext(ctx, "ip", kind.object, "delete", name).CombinedOutput(); err != nil {
			return false, fmt.Errorf("ip %s delete %s: %w: %s", kind.object, name, err, bytes.TrimSpace(out))
		}
		removed = true
	}
	return removed, nil
}

// sharedMemory is the directory in which Linux has named shared memory.
const sharedMemory = "/dev/shm"

// RemoveFaketime removes the shared memory that libfaketime leaves behind after a process was killed.
func RemoveFaketime(pid int) (removed []string) {
	for _, name := range []string{"faketime_shm_%d", "sem.faketime_sem_%d"} {
		path := filepath.Join(sharedMemory, fmt.Sprintf(name, pid))
		if os.Remove(path) == nil {
			removed = append(removed, path)
		}
	}
	return removed
}
