package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// This file compares the permits that a server keeps for a semaphore with its clients' permits. Samples do not show the
// owners of permits: only sums are compared. A key that several masters have kept is not judged, because it is not
// known whose state counts.

// permitSamples visits the samples of each semaphore in the order of time, with the permits that the server keeps,
// until visit returns false.
func (s *nodeSamples) permitSamples(visit func(key int32, x *history.Sample, kept int64) bool) {
	for key, name := range s.h.Keys {
		if s.h.Limit(int32(key)) <= 0 {
			continue
		}
		home := none
		for node, samples := range s.nodes {
			if slices.ContainsFunc(samples, func(i int32) bool { return s.h.Samples[i].Keys[name].Limit > 0 }) {
				if home != none {
					home = none
					break
				}
				home = int32(node)
			}
		}
		if home == none {
			continue
		}
		for _, x := range refsAt(s.h.Samples, s.nodes[home]) {
			if !visit(int32(key), x, int64(x.Keys[name].Permits)) {
				break
			}
		}
	}
}

// fewerPermits finds, for each semaphore, a sample with fewer permits than its clients certainly held and were
// promised. A promise does not count if a fault may have changed the servers' data since it was requested.
func (c *honestyCheck) fewerPermits() {
	seen := c.samples()
	if seen == nil {
		return
	}
	key, next, open := none, 0, []int32(nil)
	seen.permitSamples(func(k int32, x *history.Sample, kept int64) bool {
		if k != key {
			key, next, open = k, 0, nil
		}
		for holds := c.byKey[k]; next < len(holds) && c.holds[holds[next]].from <= x.Sent; next++ {
			open = append(open, holds[next])
		}
		open = slices.DeleteFunc(open, func(i int32) bool { return c.holds[i].until < x.Time })
		sum, span := int64(0), none
		for i, h := range refsAt(c.holds, open) {
			if !h.promisedAt(x.Sent) || !h.promisedAt(later(x.Time, keepError(0, c.o))) ||
				c.touched(c.all, segment{c.requested(h, x.Sent), x.Time}) {
				continue
			}
			if n := c.outAt(i, x.Time); n > 0 {
				sum, span = sum+n, h.span
			}
		}
		if sum <= kept {
			return true
		}
		c.found.add(finding{rule: fewerPermits, x: none, y: span, start: x.Time, end: x.Time,
			note: fmt.Sprintf("%s, but clients were promised %d", c.keptPermits(x, k), sum)})
		return false
	})
}

// requested is since when the promise of h that is in force at t was requested: the acquire, or a later renewal if it
// is certain which hold of its owner that was about.
func (c *honestyCheck) requested(h *hold, t time.Duration) time.Duration {
	since := h.asked
	for _, p := range c.promises().all(h.owner, h.key) {
		switch {
		case p.at > t:
			return since
		case p.kind == promiseMade && p.span != h.span: // another hold of the owner
			return h.asked
		case p.kind == promiseReplaced && (p.span != none ||
			!c.all.mayAffect(segment{p.asked, p.asked}, anyClient, history.AffectsTraffic, history.AffectsClients)):
			since = p.asked
		}
	}
	return since
}

// outAt is how many permits of hold i its owner relies on at t.
func (v *view) outAt(i int32, t time.Duration) int64 {
	n := v.weight(i)
	for _, p := range v.parts[i] {
		if p.at <= t {
			n -= int64(p.permits)
		}
	}
	return n
}

// judgeMorePermits finds, for each semaphore, the first sample with more permits than its clients can have: permits of
// holds that may last, of acquires of unknown outcome, and of requests that failed less than the slack before, except
// refused tries. A lock whose grants have no validity may keep unreleased permits without an end.
func (v *view) judgeMorePermits(o Options, found *findings) {
	seen := v.samples()
	if seen == nil {
		return
	}
	dis, sums, end := v.allDisturbances(o), make(map[int32]*occupancySums), v.lastActivity()
	seen.permitSamples(func(key int32, x *history.Sample, kept int64) bool {
		if x.Time > end { // the harness acquires it as well
			return false
		}
		if kept == 0 {
			return true
		}
		if sums[key] == nil {
			all := newOccupancySums(v.mayHavePermits(key, o))
			sums[key] = &all
		}
		sum := sums[key].in(segment{x.Sent, x.Time}).permits
		if kept <= sum {
			return true
		}
		if dis.mayAffect(segment{0, x.Time}, anyClient, history.AffectsData) {
			return false
		}
		if span := v.lastRequest(key, x.Sent); span != none {
			found.add(finding{rule: permitsKept, x: none, y: span, start: x.Time, end: x.Time,
				note: fmt.Sprintf("%s, but clients can have only %d", v.keptPermits(x, key), sum)})
		}
		return false
	})
}

// lastActivity is when the last operation of a client was invoked, or returned.
func (v *view) lastActivity() (last time.Duration) {
	for _, s := range refs(v.h.Spans) {
		if last = max(last, s.Call); s.Return < never {
			last = max(last, s.Return)
		}
	}
	return last
}

// mayHavePermits are the longest possible times of all permits of a key.
func (v *view) mayHavePermits(key int32, o Options) []occupancy {
	valid := false
	for _, s := range refs(v.h.Spans) {
		valid = valid || s.Key == key && s.Valid != 0 && s.Op != history.OpInspect
	}
	all := v.freeTimes().extents.possiblyHeld(key, true, o.slack())
	if !valid {
		for i := range all {
			if holds := v.byKey[key]; i >= len(holds) || v.holds[holds[i]].freeBy == never { // possible, or not released
				all[i].until = never
			}
		}
	}
	for _, s := range refs(v.h.Spans) {
		if s.Key != key || s.Outcome != history.Fail || !isAcquire(s.Op) {
			continue
		}
		until := later(s.Return, o.slack())
		if s.Op == history.OpTry && s.Busy && !s.Undone { // it was refused, and nothing has to be undone
			until = s.Return
		}
		all = append(all, newOccupancy(s, s.Call, until))
	}
	return all
}

// lastRequest is the last acquire or try of a key before t; none if there is none.
func (v *view) lastRequest(key int32, t time.Duration) int32 {
	last := none
	for i, s := range refs(v.h.Spans) {
		if s.Key == key && s.Ended >= 0 && s.Call <= t && isAcquire(s.Op) &&
			(last == none || cmp.Compare(s.Call, v.h.Spans[last].Call) >= 0) {
			last = i
		}
	}
	return last
}

// keptPermits says how many permits a server kept.
func (v *view) keptPermits(x *history.Sample, key int32) string {
	name := v.h.Keys[key]
	return fmt.Sprintf("%s kept %s of %s", x.Node, format.Count(x.Keys[name].Permits, "permit"), lockName(name))
}
