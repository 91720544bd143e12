package liveholds

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// forces are the forced releases of one key that may end holds. A hold that was requested before one returned may have
// been ended by it.
type forces struct {
	pending []force       // in flight, or of unknown outcome: these may take effect at any time
	by      time.Duration // until when a successful forced release may have ended a requested hold
}

// force is a forced release.
type force struct {
	call  time.Duration
	owner string // whose permits it takes, if it takes only some
	some  bool
}

func (f *forces) begin(r *request) {
	f.pending = append(f.pending, force{r.time, r.owner, r.some})
}

// end applies the reply to a forced release. certain says that grants meanwhile came after it.
func (f *forces) end(r *request, e *history.Event, certain bool) {
	if e.Type == history.Info {
		return
	}
	if i := slices.IndexFunc(f.pending, func(p force) bool { return p.call == r.time && p.some == r.some }); i >= 0 {
		f.pending = slices.Delete(f.pending, i, i+1)
	}
	if e.Type == history.OK && !certain {
		f.by = max(f.by, e.Time)
	}
}

// mayEnd reports whether a forced release may have ended a hold.
func (f *forces) mayEnd(h *Hold) bool {
	return h.asked < f.by ||
		slices.ContainsFunc(f.pending, func(p force) bool { return !p.some || p.owner == h.Owner })
}
