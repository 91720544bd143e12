package child

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Member is a live process that inherited an environment variable.
type Member struct {
	Identity
	Name  string // of its program, as in ps
	Value string // of the variable
}

// Marked are this user's live processes, other than this one, with the variable called name in their environment.
// Children inherit it, so they are found even if they have left their process group and session and their parent has
// exited, unless they have cleared their environment. None on systems without /proc.
func Marked(name string) []Member {
	var found []Member
	for _, pid := range processes() {
		value, ok := variable(pid, name)
		if !ok || pid == os.Getpid() {
			continue
		}
		if id, err := Identify(pid); err == nil && id.Alive() {
			program, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
			found = append(found, Member{id, strings.TrimSpace(string(program)), value})
		}
	}
	return found
}

// processes are the numbers of all processes.
func processes() (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// variable is the value of an environment variable as process pid got it; false if it has none, is another user's or
// has exited.
func variable(pid int, name string) (value string, ok bool) {
	environ, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if key, value, _ := strings.Cut(string(entry), "="); key == name {
			return value, true
		}
	}
	return "", false
}
