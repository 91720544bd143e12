package ledger

import (
	"net/netip"
	"path/filepath"
	"regexp"
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

var runProcess = regexp.MustCompile(`-([0-9]+)\.[0-9]+$`)

// processOf is the number of the process of a run, which its name holds; 0 if it does not.
func processOf(run string) int {
	if m := runProcess.FindStringSubmatch(run); m != nil {
		pid, _ := strconv.Atoi(m[1])
		return pid
	}
	return 0
}

// clientMark is a variable in the environment of every client of a run, with the run and the number of the client.
const clientMark = "LOCKCHAOS_CLIENT"

// ClientMark is that variable as name=value for client i; empty for a nil Ledger.
func (l *Ledger) ClientMark(i int) string {
	if l == nil {
		return ""
	}
	return clientMark + "=" + runOf(l.path) + "/" + strconv.Itoa(i)
}

// ClientProcesses are the live processes of the clients of this run, and their descendants, by the number of the
// client; empty for a nil Ledger.
func (l *Ledger) ClientProcesses() map[int][]child.Member {
	if l == nil {
		return nil
	}
	found := make(map[int][]child.Member)
	for _, m := range child.Marked(clientMark) {
		number, ok := strings.CutPrefix(m.Value, runOf(l.path)+"/")
		if i, err := strconv.Atoi(number); ok && err == nil {
			found[i] = append(found[i], m)
		}
	}
	return found
}

// ClientAt is the client of this run whose process, or a child of it, has the TCP connection from local to remote open;
// false if it is none, and for a nil Ledger.
func (l *Ledger) ClientAt(local, remote netip.AddrPort) (i int, ok bool) {
	if l == nil {
		return 0, false
	}
	value, _ := child.SocketVariable(local, remote, clientMark)
	number, ok := strings.CutPrefix(value, runOf(l.path)+"/")
	i, err := strconv.Atoi(number)
	return i, ok && err == nil
}

// marked are this user's processes that have the mark of run in their environment.
func marked(run string) (found []child.Identity) {
	for _, m := range child.Marked(markName) {
		if m.Value == run {
			found = append(found, m.Identity)
		}
	}
	return found
}
