package checker

import (
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

// unknownHolds says why nothing was decided about n owners.
func unknownHolds(n int) string {
	return format.Count(n, "owner") + " had two operations in flight at once: which holds they had is unknown; " +
		"give every hold its own owner id"
}

// promiseEnd says until when a promise lasted.
func promiseEnd(t time.Duration) string {
	if t == never {
		return "had no end"
	}
	return "lasted until " + format.Instant(t)
}
