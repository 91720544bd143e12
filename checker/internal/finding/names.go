package finding

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/internal/format"
)

// LockName is the name of a key in a sentence.
func LockName(key string) string {
	if key == "" {
		return "the lock"
	}
	return format.Line(key)
}

// PromiseEnd says until when a promise lasted.
func PromiseEnd(t time.Duration) string {
	if t == segment.Never {
		return "had no end"
	}
	return "lasted until " + format.Instant(t)
}
