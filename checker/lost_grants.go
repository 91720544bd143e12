package checker

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// This file finds lost grants: a fault changed the data of servers, and before the end of the promise to a holder they
// no longer had its hold, which nobody had released. A server without the hold grants the lock to the next client that
// requests it. If somebody asked in time, two clients held the lock, and other properties are
// violated. If nobody did, the run has not shown that the lock is safe, so [Exercised] is undecided; of a lock that
// states that it keeps its grants ([promise.KeepsGrants]), [Honesty] is violated in both cases, unless the fault
// removed data by itself.
//
// Samples decide if they show the hold; otherwise the reply of the lock does, which refused the holder a release or a
// renewal because it did not hold the lock.

// lostGrant is a grant that was lost.
type lostGrant struct {
	hold  int32
	seen  time.Duration // when a sample or a reply showed the loss
	until time.Duration // the end of the promise
	node  string        // whose sample shows it; "": a reply does
	asked bool          // another owner was granted the lock by then
}

// findLostGrants finds the grants that a fault may have removed, in the order of the holds. It needs the refusals that
// [honestyCheck.judgeAnswers] has found.
func (c *honestyCheck) findLostGrants() []lostGrant {
	if !c.mayLoseGrants() {
		return nil
	}
	all := slices.Clone(c.refused)
	// While a fault moves keys between servers, no sample shows which of them counts.
	moved := c.all.any(segment{0, c.h.End}, func(f *faultTime) bool { return f.states(history.AffectsSlots) })
	if s := c.samples(); s != nil && !moved {
		all = slices.Concat(all, s.lostGrants(c.o), c.lostPermits(s))
	}
	all = slices.DeleteFunc(all, func(l lostGrant) bool {
		h := &c.holds[l.hold]
		return !c.all.mayAffect(segment{h.asked, l.seen}, anyClient, history.AffectsData) || c.reopened(h)
	})
	for _, l := range refs(all) {
		l.asked = c.askedAfter(l)
	}
	slices.SortStableFunc(all, func(a, b lostGrant) int { return int(a.hold - b.hold) })
	return all
}

// mayLoseGrants reports whether a fault may have removed a grant. A lock of several keys ([promise.MultiKey]) is lost
// only with all of them, of which samples show one, and a refusal need not be about all.
func (c *honestyCheck) mayLoseGrants() bool {
	return c.all.mayAffect(segment{0, c.h.End}, anyClient, history.AffectsData) && !c.o.states(promise.MultiKey)
}

// refusedHold notes that the holder was refused a release or renewal inside its promise, after a fault that may have
// removed the hold. Samples that show the hold decide instead.
func (c *honestyCheck) refusedHold(i int32, at time.Duration) {
	h := &c.holds[i]
	if s := c.samples(); s == nil || s.firstNamed(ownerKey{h.owner, h.key}, segment{h.asked, at}) == nil {
		c.refused = append(c.refused, lostGrant{hold: i, seen: at, until: h.lastPromise()})
	}
}

// judgeLostGrants finds the grants that were lost although the lock states that it keeps them.
func (c *honestyCheck) judgeLostGrants() {
	if !c.o.states(promise.KeepsGrants) {
		return
	}
	for _, l := range c.findLostGrants() {
		if h := &c.holds[l.hold]; c.mustKeep(l) {
			c.found.add(finding{rule: grantLost, x: none, y: h.span, start: l.seen, end: min(h.until, l.until),
				note: c.lossText(l)})
		}
	}
}

// mustKeep reports whether a lock that keeps its grants had to keep this one: its promise had an end, and no fault may
// have removed data by itself.
func (c *honestyCheck) mustKeep(l lostGrant) bool {
	during := segment{c.holds[l.hold].asked, l.seen}
	return l.until < never && !(c.o.applies(honestRemoved) && c.all.any(during, (*faultTime).removesData))
}

// removesData reports whether a fault removes data of servers, or ends its time to live. A fault of unknown class may.
func (f *faultTime) removesData() bool {
	switch f.class {
	case history.FaultRemoves, history.FaultForgets, history.FaultPlants, history.FaultSkews:
		return true
	}
	return f.class == "" && !f.noted && f.mayAffect(history.AffectsData)
}

// unaskedLosses says that grants were lost while nobody asked for the lock; "" if there are none, or if in this run
// somebody asked for another one. Those that a lock had to keep violate [Honesty]. When no client requests a lock any
// more, because the run ends, a loss leaves nothing untested.
func (v *view) unaskedLosses(o Options) string {
	c := newHonestyCheck(v, o.forProperty(Honesty))
	if !c.mayLoseGrants() {
		return ""
	}
	c.judgeAnswers()
	all := c.findLostGrants()
	if slices.ContainsFunc(all, func(l lostGrant) bool { return l.asked }) {
		return ""
	}
	last := v.lastRequested()
	all = slices.DeleteFunc(all, func(l lostGrant) bool {
		return l.seen >= last || o.states(promise.KeepsGrants) && c.mustKeep(l)
	})
	if len(all) == 0 {
		return ""
	}
	text := "the grant was lost; nobody asked in time: " + c.lossText(all[0])
	if len(all) > 1 {
		text += ", and " + format.Count(len(all)-1, "more grant")
	}
	return text
}

// lastRequested is until when clients requested locks: the last acquire or try was invoked, or returned, by then.
func (v *view) lastRequested() (last time.Duration) {
	for _, s := range refs(v.h.Spans) {
		if !isAcquire(s.Op) {
			continue
		}
		if last = max(last, s.Call); s.Return < never {
			last = max(last, s.Return)
		}
	}
	return last
}

// lossText says how a grant was lost.
func (v *view) lossText(l lostGrant) string {
	h := &v.holds[l.hold]
	text := fmt.Sprintf("client %d was promised %s", v.client(h.span), lockName(v.h.Keys[h.key]))
	if l.until < never {
		text += " until " + format.Instant(l.until)
	}
	if l.node == "" {
		return fmt.Sprintf("%s, but at %s the lock replied that it did not hold it", text, format.Instant(l.seen))
	}
	return fmt.Sprintf("%s, but at %s %s no longer had it", text, format.Instant(l.seen), l.node)
}

// askedAfter reports whether another owner was granted the lock after a grant was lost, while its holder relied on it
// and was promised it. Of a semaphore that is so only if there were too few permits for both.
func (c *honestyCheck) askedAfter(l *lostGrant) bool {
	h := &c.holds[l.hold]
	end, limit := min(h.until, l.until), c.h.Limit(h.key)
	holds := c.byKey[h.key]
	n := sort.Search(len(holds), func(n int) bool { return c.holds[holds[n]].from > h.from })
	for ; n < len(holds) && c.holds[holds[n]].from < end; n++ {
		g := &c.holds[holds[n]]
		if g.owner == h.owner || g.reader && h.reader {
			continue
		}
		if limit == 0 || c.permitsAt(holds[max(0, n-maxLookBack):n+1], g.from) > int64(limit) {
			return true
		}
	}
	return false
}

// permitsAt is how many permits of some holds clients rely on at t.
func (v *view) permitsAt(holds []int32, t time.Duration) (sum int64) {
	for _, i := range holds {
		if t < v.holds[i].until {
			sum += v.outAt(i, t)
		}
	}
	return sum
}
