package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// lateFaultMargin is how long before the end of the run a fault has to come to be required to have an effect; in a run
// of less than 4 s it is a twentieth of the run.
const lateFaultMargin = 200 * time.Millisecond

// faultEffects counts the effects of the faults of a run.
type faultEffects struct {
	injected      int             // faults that count
	withoutEffect []history.Fault // of these: without an observed effect
	whileHeld     int             // of these: while the lock was held
	late          int             // too late to have an effect: these do not count
	elsewhere     []string        // faults that hit only servers without a record of the lock, in words
	expiry        string          // the missing evidence if holders were paused; "": none
}

// faults examines the injected faults. A fault just before the end, such as a random one, does not count if it had no
// effect, unless there is no other fault.
func (v *view) faults(o Options) (s faultEffects) {
	held, hit := sync.OnceValue(v.heldAt), v.hitClients()
	hadEffect, landed, optional := make(map[int]bool), make(map[int]bool), make(map[int]bool) // by id of each fault
	elsewhere := make(map[int]string)                                                         // the same
	for _, f := range refs(v.h.Faults) {
		if f.ID == 0 || (f.Phase != history.Injected && f.Phase != history.TookEffect) {
			continue
		}
		hadEffect[f.ID], optional[f.ID] = hadEffect[f.ID] || f.Phase == history.TookEffect, f.Optional
		if strings.HasPrefix(f.Target, clientTarget) {
			landed[f.ID] = hit[f.ID]
		} else {
			why := v.faultElsewhere(f, f.Time)
			there := why == "" || !o.applies(faultNotThere)
			landed[f.ID], elsewhere[f.ID] = landed[f.ID] || there && held()(f.Time), why
		}
	}
	s.withoutEffect = slices.DeleteFunc(slices.Clone(v.h.Faults), func(f history.Fault) bool {
		return f.ID == 0 || f.Phase != history.Injected || hadEffect[f.ID] || f.Optional
	})
	maps.DeleteFunc(landed, func(id int, there bool) bool { return optional[id] && !(there && hadEffect[id]) })
	late, last := make(map[int]bool), v.lastActive()-min(lateFaultMargin, v.h.End/20)
	isLate := func(f history.Fault) bool { return f.Time > last && o.applies(tooLate) }
	for _, f := range s.withoutEffect {
		if isLate(f) {
			late[f.ID] = true
		}
	}
	if len(late) < len(landed) {
		s.withoutEffect, s.late = slices.DeleteFunc(s.withoutEffect, isLate), len(late)
		maps.DeleteFunc(landed, func(id int, _ bool) bool { return late[id] })
	}
	s.injected = len(landed)
	for id := range landed { // order does not matter
		if landed[id] {
			s.whileHeld++
		} else if why := elsewhere[id]; why != "" {
			s.elsewhere = append(s.elsewhere, why)
		}
	}
	slices.Sort(s.elsewhere)
	s.expiry = v.missingExpiry()
	return s
}

// lastActive returns the time when the lock was last requested, granted, refused or released. A later fault, such as
// one during the probes at the end, can no longer affect the run. A waiter counts until its acquire returns.
func (v *view) lastActive() time.Duration {
	last := time.Duration(-1)
	for _, s := range refs(v.h.Spans) {
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

// missingExpiry names the missing evidence if the only faults paused clients, and some of these held the lock, but no
// promise to them ended during a pause. A lock that promises without an end cannot show an expiry, and none is
// required.
func (v *view) missingExpiry() string {
	healed := make(map[int]time.Duration)
	for _, f := range v.h.Faults {
		switch {
		case f.ID == 0 || f.Phase == history.Missed:
		case f.Class != history.FaultPauses || f.Optional || !strings.HasPrefix(f.Target, clientTarget):
			return ""
		case f.Phase == history.Healed:
			healed[f.ID] = f.Time
		}
	}
	least := never // how long a promise still lasted when its holder resumed
	over := false  // a promise had ended before its holder was paused
	faults := v.clientFaults()
	for _, h := range refs(v.holds) {
		for _, f := range during(faults[v.client(h.span)], h.from, h.until) {
			until := cmp.Or(healed[f.ID], v.h.End)
			switch end := h.promisedUntil(f.Time); {
			case f.Phase != history.Injected, h.until == f.Time:
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

// promisedUntil returns the end of the promise that was in force at t, or of the last one before t.
func (h *hold) promisedUntil(t time.Duration) time.Duration {
	for _, p := range slices.Backward(h.extra().laterPromises) {
		if p.from <= t {
			return p.until
		}
	}
	return h.valid
}

// hitClients are the faults that hit a client while it certainly held any key or, unless they pause it, had a request
// about a lock or a latch in flight: a fault of its connections then affects it.
func (v *view) hitClients() map[int]bool {
	hit, faults := make(map[int]bool), v.clientFaults()
	for _, h := range refs(v.holds) {
		for _, f := range during(faults[v.client(h.span)], h.from, h.until) {
			hit[f.ID] = true
		}
	}
	for i, s := range refs(v.h.Spans) {
		for _, f := range during(faults[v.client(i)], s.Call, s.Return) {
			hit[f.ID] = hit[f.ID] || f.Class != history.FaultPauses && (isLockOp(s) || isLatchOp(s.Op))
		}
	}
	return hit
}

// clientFaults are the injections and effects of faults of clients, by client, in their order.
func (v *view) clientFaults() map[int][]*history.Fault {
	all := make(map[int][]*history.Fault)
	for _, f := range refs(v.h.Faults) {
		if client := (&faultTime{target: f.Target}).client(); client >= 0 && f.ID != 0 &&
			(f.Phase == history.Injected || f.Phase == history.TookEffect) {
			all[client] = append(all[client], f)
		}
	}
	return all
}

// during are the faults, in their order, from one instant to another, both included.
func during(faults []*history.Fault, from, until time.Duration) []*history.Fault {
	first := sort.Search(len(faults), func(n int) bool { return faults[n].Time >= from })
	end := sort.Search(len(faults), func(n int) bool { return faults[n].Time > until })
	return faults[first:max(first, end)]
}

// heldAt returns a function that reports whether any key was certainly held, or a latch was counting, at a time.
func (v *view) heldAt() func(time.Duration) bool {
	ends := make([][]time.Duration, len(v.byKey)) // latest end so far
	for k, holds := range v.byKey {
		last := time.Duration(-1)
		ends[k] = make([]time.Duration, 0, len(holds))
		for _, i := range holds {
			last = max(last, v.holds[i].until)
			ends[k] = append(ends[k], last)
		}
	}
	latches := v.latches()
	return func(t time.Duration) bool {
		for _, l := range latches { // order does not matter
			if slices.ContainsFunc(l.armings, func(a arming) bool { return a.countsAt(t) && !l.mayBeDeleted(&a, t) }) {
				return true
			}
		}
		for k, holds := range v.byKey {
			n := sort.Search(len(holds), func(n int) bool { return v.holds[holds[n]].from > t })
			if n > 0 && ends[k][n-1] > t {
				return true
			}
		}
		return false
	}
}
