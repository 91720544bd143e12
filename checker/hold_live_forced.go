package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// liveForces are the forced releases of one key that may end holds: see [holdFold.forced].
type liveForces struct {
	pending []liveForce   // in flight, or of unknown outcome: those may take effect at any time
	by      time.Duration // what was requested before that may have been ended by one that succeeded
}

// liveForce is one of them.
type liveForce struct {
	call  time.Duration
	owner string // whose permits it takes, if it takes only some
	some  bool
}

func (f *liveForces) begin(r *request) {
	f.pending = append(f.pending, liveForce{r.time, r.owner, r.some})
}

// end applies the reply to a forced release. certain says that what was granted meanwhile was granted after it.
func (f *liveForces) end(r *request, e *history.Event, certain bool) {
	if e.Type == history.Info {
		return
	}
	if i := slices.IndexFunc(f.pending, func(p liveForce) bool { return p.call == r.time && p.some == r.some }); i >= 0 {
		f.pending = slices.Delete(f.pending, i, i+1)
	}
	if e.Type == history.OK && !certain {
		f.by = max(f.by, e.Time)
	}
}

// mayEnd reports whether one of them may have ended a hold.
func (f *liveForces) mayEnd(h *LiveHold) bool {
	return h.asked < f.by ||
		slices.ContainsFunc(f.pending, func(p liveForce) bool { return !p.some || p.owner == h.Owner })
}
