package checker

import "time"

// holdExtra is what few holds have.
type holdExtra struct {
	furthest       time.Duration // end of the promise that lasted longest; 0: no other was longer than the last
	laterPromises  []segment     // promises by renewals that came after the promise before them had ended
	leased         time.Duration // until when servers keep it at the latest: the lease from the last reply; 0: as granted
	failedReleases int32         // releases that failed and left the lock as it was: the servers still count these levels
	lostLevels     int32         // levels whose loss was reported: the servers may still count them
	partForced     bool          // some of its permits were released by force
	maybeLeft      bool          // a release of an inner level had an unknown outcome: the servers may still count it
}

// more is a copy of what few holds have.
func (h *hold) more() holdExtra {
	if h.extra == nil {
		return holdExtra{}
	}
	return *h.extra
}

// change is what few holds have, to be changed.
func (h *hold) change() *holdExtra {
	if h.extra == nil {
		h.extra = new(holdExtra)
	}
	return h.extra
}
