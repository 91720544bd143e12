package waiting

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// ReleasedFor is the time for which such a lock retries a release.
const ReleasedFor = 1500 * time.Millisecond

// WaitedOut reports whether an acquire failed when its wait was over.
func WaitedOut(v *bounds.View, f history.Failure, o given.Options) bool {
	return f.Wait > 0 && segment.Later(f.Time, o.ClockError+ClockGrain) >= segment.Later(v.H.Spans[f.Span].Call, f.Wait)
}

// ClockGrain is the largest error by which the clock of a client may round a wait timeout.
const ClockGrain = 10 * time.Millisecond

// Without a fault, at least EnoughFailures operations of one kind (or both of two) and at least one in FailureShare of
// them have to fail for a violation; on a quorum, EnoughFailures of them and all of the kind.
const (
	EnoughFailures = 3
	FailureShare   = 20
)
