package ledger

import (
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
)

// UnknownCause is why it is unknown which holds an owner had.
type UnknownCause uint8

const (
	twoAtOnce     UnknownCause = iota // it had two operations in flight at once
	lateRelease                       // it acquired after a release of unknown outcome
	forcedAtGrant                     // a forced release was in flight when it was granted the lock
	MoreReleased                      // it released more permits than it is known to have had
	LeaseEnded                        // in a stream: its lease may have ended before the times that were judged
	UnknownCauses                     // how many there are
)

func (d UnknownCause) String() string {
	return [UnknownCauses]string{
		"had two operations in flight at once", "acquired after a release of unknown outcome",
		"was granted the lock while a forced release was in flight", "released permits that it is not known to have had",
		"was refused because its lease had ended, which the stream learned only after it had judged the hold",
	}[d]
}

// UnknownHolds says why nothing was decided about owners, given how many of them there are of each kind of doubt.
func UnknownHolds(owners [UnknownCauses]int) string {
	var clauses []string
	for d, n := range owners {
		text := UnknownCause(d).String()
		switch {
		case n == 0:
			continue
		case n > 1:
			text = strings.Replace(strings.Replace(text, "was ", "were ", 1), "it is", "they are", 1)
		}
		clauses = append(clauses, format.Count(n, "owner")+" "+text)
	}
	text := strings.Join(clauses, ", ") + ": which holds were theirs is unknown"
	if owners[twoAtOnce] > 0 {
		text += "; give every hold its own owner id"
	}
	return text
}
