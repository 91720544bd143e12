package disturbed

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
)

// victims are the children of the harness that are servers, or clients.
func victims(harness int, kind Victim) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		s, err := child.Stat(pid)
		if err != nil || s.Parent != harness || !s.Alive() {
			continue
		}
		text, _ := os.ReadFile(file)
		words := bytes.Split(bytes.TrimRight(text, "\x00"), []byte{0})
		client := string(words[len(words)-1]) == "client"
		if client == (kind == Client) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

var eventTime = regexp.MustCompile(`"time":(\d+)`)

// reached reports whether the end of a history that is being written has an event of at or later.
func reached(file string, at time.Duration) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	const tail = 4096
	end, _ := f.Seek(0, io.SeekEnd)
	_, _ = f.Seek(max(0, end-tail), io.SeekStart)
	text, _ := io.ReadAll(f)
	for _, m := range eventTime.FindAllSubmatch(text, -1) {
		if ns, _ := strconv.ParseInt(string(m[1]), 10, 64); ns >= at.Nanoseconds() {
			return true
		}
	}
	return false
}
