package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/lockchaos/lockchaos/internal/child"
)

// markName is the variable in the environment of everything that a run starts.
// Whatever those processes start themselves inherits it: so a sweep also finds
// grandchildren, which no ledger has a line for.
const markName = "LOCKCHAOS_RUN"

// Mark is the variable of this run, as name=value, for the environment of the
// processes that it starts. Empty for a nil Ledger.
func (l *Ledger) Mark() string {
	if l == nil {
		return ""
	}
	return markName + "=" + runOf(l.path)
}

// runOf is the name under which a sweep reports the run of a ledger.
func runOf(path string) string {
	base := filepath.Base(path)
	return base[:len(base)-len(suffix)]
}

// marked are the processes of this user that carry the mark of a dead run. On
// systems without /proc there are none to be found.
func marked(run string) []entry {
	mark := []byte(markName + "=" + run)
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []entry
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil {
			continue // somebody else's, or gone
		}
		for _, variable := range bytes.Split(environ, []byte{0}) {
			if !bytes.Equal(variable, mark) {
				continue
			}
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if _, started, err := child.Stat(pid); err == nil && pid != os.Getpid() {
				found = append(found, entry{PID: pid, Started: started})
			}
		}
	}
	return found
}
