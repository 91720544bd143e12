package child

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// familyAge is for how long the members of a family are remembered: finding them reads the status of every process.
const familyAge = time.Second

// Halts finds families of processes that do not run, for a reason outside of them: another program (SIGSTOP, a
// debugger, a frozen control group) or a machine without a processor to spare. It reads /proc, so elsewhere than on
// Linux nothing is ever halted. The zero value knows no family, see [Halts.Find]. Its methods must not be called
// concurrently.
type Halts struct {
	found    time.Time             // when members was read; zero: never
	members  map[int][]int         // by leader: the numbers of the processes of its family
	freezers map[int][]string      // by process
	waited   map[int]time.Duration // by thread: see waits
}

// Find reads which processes belong to the families of leaders, if one of these is new or the last reading is older
// than familyAge. It reads the status of every process of the machine, so a caller with many leaders names them all at
// once.
func (h *Halts) Find(leaders []int) {
	isNew := func(leader int) bool { _, known := h.members[leader]; return !known }
	if time.Since(h.found) <= familyAge && !slices.ContainsFunc(leaders, isNew) {
		return
	}
	h.found, h.members = time.Now(), families(leaders)
	h.freezers = make(map[int][]string)
	own := freezers(os.Getpid())
	for _, pids := range h.members {
		for _, pid := range pids {
			// If this program is frozen, too, that is a stall of the harness.
			h.freezers[pid] = slices.DeleteFunc(freezers(pid), func(f string) bool { return slices.Contains(own, f) })
		}
	}
}

// Halted says why a process of the family of leader does not run: "stopped by a signal"; "": all run, or [Halts.Find]
// has not read the family of leader. The family are the processes of the group that leader leads, and its descendants:
// a client may be the child of a script.
func (h *Halts) Halted(leader int) string {
	for _, pid := range h.members[leader] {
		switch s, err := Stat(pid); {
		case err != nil:
		case s.State == 'T':
			return "stopped by a signal"
		case s.State == 't':
			return "stopped by a debugger"
		case slices.ContainsFunc(h.freezers[pid], frozen):
			return "frozen with its control group"
		}
	}
	return ""
}

// Waited returns the longest time for which a thread of the family of leader has waited for a processor since the last
// call for that leader. The kernel counts a wait when it ends.
func (h *Halts) Waited(leader int) (longest time.Duration) {
	if h.waited == nil {
		h.waited = make(map[int]time.Duration)
	}
	for _, pid := range h.members[leader] {
		for thread, total := range waits(pid) {
			if before, known := h.waited[thread]; known {
				longest = max(longest, total-before)
			}
			h.waited[thread] = total
		}
	}
	return longest
}

// families are the living processes of the families of leaders. A leader that has exited has none.
func families(leaders []int) map[int][]int {
	status := make(map[int]Status)
	pids := processes()
	for _, pid := range pids {
		if s, err := Stat(pid); err == nil && s.Alive() {
			status[pid] = s
		}
	}
	all := make(map[int][]int, len(leaders))
	for _, leader := range leaders {
		if all[leader] = nil; status[leader].Parent != 0 {
			all[leader] = []int{leader}
		}
	}
	for _, pid := range pids {
		for up, of := pid, status[pid]; of.Parent != 0; up, of = of.Parent, status[of.Parent] {
			if _, leads := all[up]; !leads {
				up = of.Group
			}
			if _, leads := all[up]; leads && up != pid {
				all[up] = append(all[up], pid)
			}
			if _, leads := all[up]; leads {
				break
			}
		}
	}
	return all
}

// waits returns, by thread, the time for which each thread of a process has waited for a processor since it began
// (schedstat: the second number, in nanoseconds).
func waits(pid int) map[int]time.Duration {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, _ := os.ReadDir(tasks)
	all := make(map[int]time.Duration, len(threads))
	for _, t := range threads {
		line, err := os.ReadFile(filepath.Join(tasks, t.Name(), "schedstat"))
		fields := bytes.Fields(line)
		if err != nil || len(fields) < 2 {
			continue // it has exited, or the kernel does not count
		}
		ns, err1 := strconv.ParseInt(string(fields[1]), 10, 64)
		thread, err2 := strconv.Atoi(t.Name())
		if errors.Join(err1, err2) == nil {
			all[thread] = time.Duration(ns)
		}
	}
	return all
}

// freezers are the files that say whether the control groups of a process are frozen: of version 2 and of the
// controller freezer of version 1, wherever systems mount them.
func freezers(pid int) (files []string) {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	for line := range strings.Lines(string(text)) {
		_, controllers, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(controllers, ":")
		switch controllers {
		case "":
			files = append(files, filepath.Join("/sys/fs/cgroup", path, "cgroup.events"),
				filepath.Join("/sys/fs/cgroup/unified", path, "cgroup.events"))
		case "freezer":
			files = append(files, filepath.Join("/sys/fs/cgroup/freezer", path, "freezer.state"))
		}
	}
	return files
}

// frozen reports whether a file of freezers says so.
func frozen(file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && (bytes.Contains(text, []byte("frozen 1")) || bytes.HasPrefix(text, []byte("FROZEN")))
}
