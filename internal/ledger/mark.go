package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/internal/child"
)

// markName is a variable in the environment of every process of a run. Their
// children inherit it, so a sweep also finds grandchildren, which are in no ledger.
const markName = "LOCKCHAOS_RUN"

// Mark is that variable as name=value, for the environment of the processes that
// the run starts; empty for a nil Ledger.
func (l *Ledger) Mark() string {
	if l == nil {
		return ""
	}
	return markName + "=" + runOf(l.path)
}

// runOf is the name of the run that has the ledger at path.
func runOf(path string) string { return strings.TrimSuffix(filepath.Base(path), suffix) }

// marked are this user's processes that have the mark of run in their
// environment; none on systems without /proc.
func marked(run string) []child.Identity {
	mark := []byte(markName + "=" + run)
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []child.Identity
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil {
			continue // another user's process, or it has exited
		}
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			if !bytes.Equal(variable, mark) {
				continue
			}
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if id, err := child.Identify(pid); err == nil && pid != os.Getpid() {
				found = append(found, id)
			}
		}
	}
	return found
}
