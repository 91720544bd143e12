package ledger

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/segment"
)

// holdExtra has the properties that few holds have.
type holdExtra struct {
	furthest      time.Duration     // end of the promise that lasted longest; 0: no other was longer than the last
	LaterPromises []segment.Segment // promises by renewals that came after the promise before them had ended
	// until when servers keep it at the latest: the lease from the last reply; 0: as granted
	leased time.Duration
	// releases that failed and left the lock as it was: the servers still count these levels
	FailedReleases int32
	LostLevels     int32 // levels whose loss was reported: the servers may still count them
	partForced     bool  // some of its permits were released by force
	MaybeLeft      bool  // a release of an inner level had an unknown outcome: the servers may still count it
}

// Extra returns a copy of the rare properties of h.
func (h *Hold) Extra() holdExtra {
	if h.extras == nil {
		return holdExtra{}
	}
	return *h.extras
}

// mutableExtra returns the rare properties of h for a change; it allocates them if h has none.
func (h *Hold) mutableExtra() *holdExtra {
	if h.extras == nil {
		h.extras = new(holdExtra)
	}
	return h.extras
}
