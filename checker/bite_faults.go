package checker

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

const (
	// stall is the fault that stops a client for a while.
	pauseClient = "pause-client"
	// lateFault is how long before the end of the run a fault has to come to be
	// asked for an effect; in a run of less than 4 s, a twentieth of it.
	lateFaultMargin = 200 * time.Millisecond
)

// struck is what faults did in a run.
type faultEffects struct {
	injected int             // that are counted
	silent   []history.Fault // of these: never had an effect
	landed   int             // of these: while the lock was held
	late     int             // came too late to have an effect, and are not counted
	expiry   string          // what is missing if holders were stopped; "": nothing
}

// faults looks at what was injected. One that came just before the end, as a
// drawn one may, and had no effect is not counted, unless there is no other.
func (v *view) faults(o Options) (s faultEffects) {
	held := sync.OnceValue(v.heldAt)
	bit, landed, counted := make(map[int]bool), make(map[int]bool), make(map[int]bool)
	for _, f := range v.h.Faults {
		if f.ID == 0 || (f.Phase != history.Injected && f.Phase != history.TookEffect) {
			continue
		}
		counted[f.ID] = true
		bit[f.ID] = bit[f.ID] || f.Phase == history.TookEffect
		end, _, _ := strings.Cut(f.Target, ">") // of a link, the client's
		if client, ok := strings.CutPrefix(end, "client:"); ok {
			landed[f.ID] = landed[f.ID] || v.heldBy(client, f.Time) ||
				f.Name != pauseClient && v.hasRequestInFlight(client, f.Time)
		} else {
			landed[f.ID] = landed[f.ID] || held()(f.Time)
		}
	}
	late, last := make(map[int]bool), v.lastActive()-min(lateFaultMargin, v.h.End/20)
	for _, f := range v.h.Faults {
		switch {
		case f.ID == 0 || f.Phase != history.Injected || bit[f.ID]:
		case f.Time > last && o.applies(tooLate):
			late[f.ID] = true
		default:
			s.silent = append(s.silent, f)
		}
	}
	if len(late) < len(counted) {
		s.late = len(late)
		for id := range late {
			delete(counted, id)
			delete(landed, id)
		}
	} else {
		s.silent = v.silentFaults(bit)
	}
	s.injected = len(counted)
	for id := range landed { // order does not matter
		if landed[id] {
			s.landed++
		}
	}
	s.expiry = v.missingExpiry()
	return s
}

// silentFaults is the injected faults that never bit.
func (v *view) silentFaults(bit map[int]bool) (silent []history.Fault) {
	for _, f := range v.h.Faults {
		if f.ID != 0 && f.Phase == history.Injected && !bit[f.ID] {
			silent = append(silent, f)
		}
	}
	return silent
}

// lastActive is when the lock was last asked for, granted, refused or given back:
// what comes after it, such as the probes of the end, is not the run that a fault
// meets. Who waits is still there to be hit.
func (v *view) lastActive() time.Duration {
	last := time.Duration(-1)
	for i := range v.h.Spans {
		s := &v.h.Spans[i]
		if !isLockOp(s) {
			continue
		}
		if last = max(last, s.Call); s.Op != history.OpRelease && s.Return != never {
			last = max(last, s.Return)
		}
	}
	if last < 0 {
		return v.h.End
	}
	return last
}

// missingExpiry is what a run lacks whose only faults stop clients, of which
// some held the lock, if no promise to one of them ended while it stood still.
// A lock that promises without end cannot show an expiry, and is not asked for one.
func (v *view) missingExpiry() string {
	healed := make(map[int]time.Duration)
	for _, f := range v.h.Faults {
		switch {
		case f.ID == 0 || f.Phase == history.Missed:
		case f.Name != pauseClient:
			return ""
		case f.Phase == history.Healed:
			healed[f.ID] = f.Time
		}
	}
	least := never // what was left of a promise when its holder went on
	over := false  // a promise had ended before its holder was stopped
	for _, f := range v.h.Faults {
		if f.ID == 0 || f.Phase != history.Injected {
			continue
		}
		until, ok := healed[f.ID]
		if !ok {
			until = v.h.End
		}
		for i := range v.holds {
			h := &v.holds[i]
			if h.from > f.Time || h.until <= f.Time || "client:"+strconv.Itoa(v.client(h.span)) != f.Target {
				continue
			}
			switch end := h.promisedUntil(f.Time); {
			case end < f.Time:
				over = true
			case end <= until:
				return ""
			case end != never:
				least = min(least, end-until)
			}
		}
	}
	switch {
	case least == never && over:
		return "no lease ended while its holder was paused, all had ended before: pause clients sooner"
	case least == never:
		return ""
	}
	return fmt.Sprintf("no lease ended while its holder was paused, the nearest had %s left: pause clients for longer, "+
		"or use shorter leases", format.Duration(least))
}

// promisedUntil is the end of the promise that was in force at t, or the last before it.
func (h *hold) promisedUntil(t time.Duration) time.Duration {
	for i := len(h.laterPromises) - 1; i >= 0; i-- {
		if h.laterPromises[i].from <= t {
			return h.laterPromises[i].until
		}
	}
	return h.valid
}

// heldBy says whether the client of that number, as a word, certainly held any key at time t.
func (v *view) heldBy(client string, t time.Duration) bool {
	for i := range v.holds {
		h := &v.holds[i]
		if h.from > t {
			return false
		}
		if h.until > t && strconv.Itoa(v.client(h.span)) == client {
			return true
		}
	}
	return false
}

// asking says whether the client of that number, as a word, had asked a server
// for something about a lock at time t and had no answer yet: what happens to
// its connections then happens to the lock.
func (v *view) hasRequestInFlight(client string, t time.Duration) bool {
	for i := range v.h.Spans {
		s := &v.h.Spans[i]
		if s.Call > t {
			return false
		}
		if s.Return >= t && isLockOp(s) && strconv.Itoa(v.client(int32(i))) == client {
			return true
		}
	}
	return false
}

// heldAt says whether somebody certainly held any key at a given time.
func (v *view) heldAt() func(time.Duration) bool {
	ends := make([][]time.Duration, len(v.byKey)) // greatest end so far
	for k, holds := range v.byKey {
		last := time.Duration(-1)
		ends[k] = make([]time.Duration, 0, len(holds))
		for _, i := range holds {
			last = max(last, v.holds[i].until)
			ends[k] = append(ends[k], last)
		}
	}
	return func(t time.Duration) bool {
		for k, holds := range v.byKey {
			n := sort.Search(len(holds), func(n int) bool { return v.holds[holds[n]].from > t })
			if n > 0 && ends[k][n-1] > t {
				return true
			}
		}
		return false
	}
}
