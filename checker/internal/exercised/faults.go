package exercised

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/latch"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
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
func faults(v *bounds.View, o given.Options) (s faultEffects) {
	held, hit := sync.OnceValue(func() func(time.Duration) bool { return heldAt(v) }), hitClients(v)
	hadEffect, landed, optional := make(map[int]bool), make(map[int]bool), make(map[int]bool) // by id of each fault
	elsewhere := make(map[int]string)                                                         // the same
	for _, f := range refs.All(v.H.Faults) {
		if f.ID == 0 || (f.Phase != history.Injected && f.Phase != history.TookEffect) {
			continue
		}
		hadEffect[f.ID], optional[f.ID] = hadEffect[f.ID] || f.Phase == history.TookEffect, f.Optional
		if strings.HasPrefix(f.Target, excuse.ClientTarget) {
			landed[f.ID] = hit[f.ID]
		} else {
			why := faultElsewhere(v, f, f.Time)
			there := why == "" || !o.Applies(faultNotThere)
			landed[f.ID], elsewhere[f.ID] = landed[f.ID] || there && held()(f.Time), why
		}
	}
	s.withoutEffect = slices.DeleteFunc(slices.Clone(v.H.Faults), func(f history.Fault) bool {
		return f.ID == 0 || f.Phase != history.Injected || hadEffect[f.ID] || f.Optional
	})
	maps.DeleteFunc(landed, func(id int, there bool) bool { return optional[id] && !(there && hadEffect[id]) })
	late, last := make(map[int]bool), lastActive(v)-min(lateFaultMargin, v.H.End/20)
	isLate := func(f history.Fault) bool { return f.Time > last && o.Applies(tooLate) }
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
	s.expiry = missingExpiry(v)
	return s
}

// lastActive returns the time when the lock was last requested, granted, refused or released. A later fault, such as
// one during the probes at the end, can no longer affect the run. A waiter counts until its acquire returns.
func lastActive(v *bounds.View) time.Duration {
	last := time.Duration(-1)
	for _, s := range refs.All(v.H.Spans) {
		if !excuse.IsLockOp(s) {
			continue
		}
		if last = max(last, s.Call); s.Op != history.OpRelease && s.Return != segment.Never {
			last = max(last, s.Return)
		}
	}
	if last < 0 {
		return v.H.End
	}
	return last
}

// missingExpiry names the missing evidence if the only faults paused clients, and some of these held the lock, but no
// promise to them ended during a pause. A lock that promises without an end cannot show an expiry, and none is
// required.
func missingExpiry(v *bounds.View) string {
	healed := make(map[int]time.Duration)
	for _, f := range v.H.Faults {
		switch {
		case f.ID == 0 || f.Phase == history.Missed:
		case f.Class != history.FaultPauses || f.Optional || !strings.HasPrefix(f.Target, excuse.ClientTarget):
			return ""
		case f.Phase == history.Healed:
			healed[f.ID] = f.Time
		}
	}
	least := segment.Never // how long a promise still lasted when its holder resumed
	over := false          // a promise had ended before its holder was paused
	faults := clientFaults(v)
	for _, h := range refs.All(v.Holds) {
		for _, f := range during(faults[v.Client(h.Span)], h.From, h.Until) {
			until := cmp.Or(healed[f.ID], v.H.End)
			switch end := h.PromisedUntil(f.Time); {
			case f.Phase != history.Injected, h.Until == f.Time:
			case end < f.Time:
				over = true
			case end <= until:
				return ""
			case end != segment.Never:
				least = min(least, end-until)
			}
		}
	}
	switch {
	case least == segment.Never && over:
		return "no lease ended while its holder was paused, all had ended before: pause clients sooner"
	case least == segment.Never:
		return ""
	}
	return fmt.Sprintf("no lease ended while its holder was paused, the nearest had %s left: pause clients for longer, "+
		"or use shorter leases", format.Duration(least))
}

// hitClients are the faults that hit a client while it certainly held any key or, unless they pause it, had a request
// about a lock or a latch in flight: a fault of its connections then affects it.
func hitClients(v *bounds.View) map[int]bool {
	hit, faults := make(map[int]bool), clientFaults(v)
	for _, h := range refs.All(v.Holds) {
		for _, f := range during(faults[v.Client(h.Span)], h.From, h.Until) {
			hit[f.ID] = true
		}
	}
	for i, s := range refs.All(v.H.Spans) {
		for _, f := range during(faults[v.Client(i)], s.Call, s.Return) {
			hit[f.ID] = hit[f.ID] || f.Class != history.FaultPauses && (excuse.IsLockOp(s) || latch.IsLatchOp(s.Op))
		}
	}
	return hit
}

// clientFaults are the injections and effects of faults of clients, by client, in their order.
func clientFaults(v *bounds.View) map[int][]*history.Fault {
	all := make(map[int][]*history.Fault)
	for _, f := range refs.All(v.H.Faults) {
		if client := (&excuse.FaultTime{Target: f.Target}).Client(); client >= 0 && f.ID != 0 &&
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
func heldAt(v *bounds.View) func(time.Duration) bool {
	ends := make([][]time.Duration, len(v.ByKey)) // latest end so far
	for k, holds := range v.ByKey {
		last := time.Duration(-1)
		ends[k] = make([]time.Duration, 0, len(holds))
		for _, i := range holds {
			last = max(last, v.Holds[i].Until)
			ends[k] = append(ends[k], last)
		}
	}
	latches := latch.Latches(v)
	return func(t time.Duration) bool {
		for _, l := range latches { // order does not matter
			if slices.ContainsFunc(l.Armings, func(a latch.Arming) bool { return a.CountsAt(t) && !l.MayBeDeleted(&a, t) }) {
				return true
			}
		}
		for k, holds := range v.ByKey {
			n := sort.Search(len(holds), func(n int) bool { return v.Holds[holds[n]].From > t })
			if n > 0 && ends[k][n-1] > t {
				return true
			}
		}
		return false
	}
}
