package checker

import (
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// lockName is the name of a key in a sentence.
func lockName(key string) string {
	if key == "" {
		return "the lock"
	}
	return format.Line(key)
}

// unknownCause is why it is unknown which holds an owner had.
type unknownCause uint8

const (
	twoAtOnce     unknownCause = iota // it had two operations in flight at once
	lateRelease                       // it acquired after a release of unknown outcome
	forcedAtGrant                     // a forced release was in flight when it was granted the lock
	moreReleased                      // it released more permits than it is known to have had
	leaseEnded                        // in a stream: its lease may have ended before the times that were judged
	unknownCauses                     // how many there are
)

func (d unknownCause) String() string {
	return [unknownCauses]string{
		"had two operations in flight at once", "acquired after a release of unknown outcome",
		"was granted the lock while a forced release was in flight", "released permits that it is not known to have had",
		"was refused because its lease had ended, which the stream learned only after it had judged the hold",
	}[d]
}

// unknownHolds says why nothing was decided about owners, given how many of them there are of each kind of doubt.
func unknownHolds(owners [unknownCauses]int) string {
	var clauses []string
	for d, n := range owners {
		text := unknownCause(d).String()
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

// promiseEnd says until when a promise lasted.
func promiseEnd(t time.Duration) string {
	if t == never {
		return "had no end"
	}
	return "lasted until " + format.Instant(t)
}
