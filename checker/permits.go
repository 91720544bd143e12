package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of permits.
const (
	tooMany       = iota // more permits held than exist
	wrongChange          // a change of the number of permits counts wrongly
	refusedChange        // a change was refused although there are enough permits to remove
	permitsTouch         // acquits: one hold ends at the instant at which the next begins
)

func permitsRules() []string {
	return []string{tooMany: "too-many", wrongChange: "miscounted-change",
		refusedChange: "refused-change", permitsTouch: "touching"}
}

// checkPermits adds up the permits that are held at once: the sweep of exclusion.go with weights.
//
// Permits are held at least from acquire returned to release invoked, except for permits that were released before the
// rest. If these cores never add up to more than the permits of the key, it is a legal order to grant each hold at its
// latest and to end it at its earliest, because that leaves the most permits at every instant at once; if they do add
// up to more, no order is legal. So it is exact for acquires that wait (with failed tries the question can be NP-hard,
// so they are not used). If an owner acquires permits several times, each time is a hold of its own, and a release
// returns the permits of the latest.
//
// The number of permits is in the history (limit, on an acquire or a resize) or in [Options] Permits. A semaphore that
// is made smaller keeps the permits that are held: so a grant is compared with the greatest size that may have been in
// force between its invocation and its return, when the last of the holds at its return was granted.
func checkPermits(v *view, o Options) Result {
	found := newFindings(o)
	keys, unknown, most, all := 0, "", int64(0), true
	for key, holds := range v.byKey {
		limit := v.h.Limit(int32(key))
		if limit == 0 || len(holds) == 0 {
			continue
		}
		keys++
		if limit == history.UnknownLimit {
			unknown = lockName(v.h.Keys[key])
			continue
		}
		out, whole := v.countPermits(holds, o, found)
		most, all = max(most, out), all && whole
	}
	v.judgeSizeChanges(o, found)
	r := found.result(Permits, func(f finding) Violation {
		if f.rule == wrongChange || f.rule == refusedChange {
			return v.changeViolation(f)
		}
		return v.permitsViolation(f, o)
	})
	r.Counts = map[string]int64{"semaphores": int64(keys), "most_held": most}
	switch {
	case !all:
		r.Summary += fmt.Sprintf(" (at least: counting stopped after %d pairs)", maxPairs)
	case r.Outcome == Violated:
	case keys == 0 && v.unjudged(func(s *history.Span) bool { return v.h.Limit(s.Key) != 0 }):
		r.Outcome, r.Summary = Undecided, unknownHolds(v.unknownCounts)
	case keys == 0:
		r.Outcome, r.Summary = NotApplicable, noSemaphore
	case unknown != "":
		r.Outcome = Undecided
		r.Summary = unknownSize(unknown)
	case v.unknownOwners > 0:
		r.Outcome = Undecided
		r.Summary = unknownHolds(v.unknownCounts)
	default:
		r.Summary = fmt.Sprintf("at most %s %s held at once, not more than exist", format.Count(most, "permit"),
			either(most == 1, "was", "were"))
	}
	return r
}

// unsized is a semaphore whose number of permits is unknown; "" if there is none.
func (v *view) unsized() string {
	for key, name := range v.h.Keys {
		if v.h.Limit(int32(key)) == history.UnknownLimit {
			return lockName(name)
		}
	}
	return ""
}

// unknownSize is the text for a semaphore whose number of permits is unknown.
func unknownSize(name string) string {
	return fmt.Sprintf("the number of permits of %s is unknown: give every acquire a limit, or use --permits", name)
}

// overUntil is until when, inside s, the active holds exceed the limit.
func (v *view) overUntil(active []int32, limit int64, s segment) time.Duration {
	var backs []partialReturn
	sum := int64(0)
	for _, i := range active {
		v.eachReturn(i, func(p partialReturn) { backs = append(backs, p) })
		sum += v.weight(i)
	}
	slices.SortFunc(backs, func(a, b partialReturn) int { return cmp.Compare(a.at, b.at) })
	until := min(s.until, max(s.from, v.h.End))
	for _, b := range backs {
		if sum -= int64(b.permits); b.at > s.from && sum <= limit {
			return min(b.at, until)
		}
	}
	return until
}

// permitsViolation names the holders of the permits. The evidence is the oldest of these holds, the grant that
// exceeded the limit, and the end of the oldest.
func (v *view) permitsViolation(f finding, o Options) Violation {
	x, y := &v.holds[f.x], &v.holds[f.y]
	key := v.h.Keys[y.key]
	_, limit := v.sizesIn(y.key, segment{y.asked, y.from})
	w := Violation{Key: key, Rule: "no more permits are held than exist", Events: []int{v.granted(x), v.granted(y)}}
	if f.x == f.y { // it requested more than exist
		w.Events[0] = int(v.h.Spans[y.span].Invoked)
	} else if x.endEvent >= 0 && x.endEvent != v.h.Spans[y.span].Ended {
		w.Events = append(w.Events, int(x.endEvent))
	}
	c := v.crowdAt(f.y, o)
	w.Clients, w.Owners = c.clients, c.owners
	w.Class = v.crowdClass(y, o)
	w.Text = fmt.Sprintf("%d permits of %s were held %s, but only %d exist: %s", c.permits, lockName(key),
		segment{f.start, f.end}.text(), limit, strings.Join(c.names, ", "))
	return w
}

// crowd are the holders of permits when one of them was granted its own, in the order of their grants.
type crowd struct {
	names, owners []string
	clients       []int
	permits       int64
}

// crowdAt are the holders of permits when hold y began, and y itself.
func (v *view) crowdAt(y int32, o Options) (c crowd) {
	last := &v.holds[y]
	for i, h := range refsAt(v.holds, v.byKey[last.key]) {
		out := v.outAfter(i, last.from, o.ClockError)
		if i == y {
			out = v.weight(i)
		}
		if h.from > last.from || out == 0 || (h.from == last.from && i > y) {
			continue
		}
		c.permits += out
		c.clients, c.owners = append(c.clients, v.client(h.span)), append(c.owners, v.h.Owners[h.owner])
		c.names = append(c.names, fmt.Sprintf("client %d (%d)", v.client(h.span), out))
	}
	return c
}

// crowdClass is a broken promise only if more permits were promised when y was granted than exist.
func (v *view) crowdClass(y *hold, o Options) Class {
	promised := int64(0)
	for i, h := range refsAt(v.holds, v.byKey[y.key]) {
		switch {
		case h == y:
			promised += v.weight(i)
		case h.from <= y.from && h.promisedAt(y.from) && y.from < v.unrenewedFrom(h):
			promised += v.outAfter(i, y.from, o.ClockError)
		}
	}
	if _, limit := v.sizesIn(y.key, segment{y.asked, y.from}); promised > limit {
		return BrokenPromise
	}
	return OutlivedLease
}
