package checker

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// The rules of permits.
const (
	tooMany      = iota // more permits out than there are
	permitsTouch        // acquits: one ends in the instant in which the next begins
)

func permitsRules() []string { return []string{tooMany: "too-many", permitsTouch: "touching"} }

// checkPermits adds up the permits that are out at once: the sweep of
// exclusion.go with weights.
//
// A hold of a semaphore is out at least from its acquire returned to its
// release invoked. If these cores never add up to more than the permits of the
// key, granting each at its latest and taking each back at its earliest is a
// legal order, because it leaves the most permits at every instant at once; if
// they do add up to more, no order is legal. So it is exact for acquires that
// wait (a failed try can make the question NP-hard, and is not asked). One owner may
// take permits several times: each time is a hold of its own, and a release
// gives back the latest.
//
// How many permits there are is told by the history (limit, on an acquire) or
// by [Options] Permits.
func checkPermits(v *view, o Options) Result {
	found := newFindings(o)
	r := Result{Property: Permits}
	keys, unknown, most, all := 0, "", int64(0), true
	for key, holds := range v.byKey {
		limit := v.h.Limit(int32(key))
		if limit == 0 || len(holds) == 0 {
			continue
		}
		keys++
		if limit == history.Unlimited {
			unknown = keyName(v.h.Keys[key])
			continue
		}
		out, whole := v.countPermits(holds, int64(limit), o, found)
		most, all = max(most, out), all && whole
	}
	r = found.result(Permits, func(f finding) Violation { return v.permitsViolation(f, o) })
	r.Counts = map[string]int64{"semaphores": int64(keys), "most_out": most}
	switch {
	case !all:
		r.Summary += fmt.Sprintf(" (at least: counting stopped after %d pairs)", maxPairs)
	case r.Outcome == Violated:
	case keys == 0:
		r.Outcome, r.Summary = NotApplicable, "no key was used as a semaphore"
	case unknown != "":
		r.Outcome = Undecided
		r.Summary = fmt.Sprintf("nobody told how many permits %s has: give every acquire a limit, or use --permits",
			unknown)
	case v.tangled > 0:
		r.Outcome = Undecided
		r.Summary = plural(v.tangled, "owner") + " had two operations under way at once, so that their permits cannot be told"
	default:
		r.Summary = fmt.Sprintf("never more permits out than there are: at most %d", most)
	}
	return r
}

// countPermits sweeps over the holds of one semaphore. A finding is a grant
// that went over the limit; it lasts while that many are out.
func (v *view) countPermits(holds []int32, limit int64, o Options, found *findings) (most int64, whole bool) {
	var active []int32
	pairs := 0
	for _, j := range holds {
		y := &v.holds[j]
		sum, kept := v.weight(j), active[:0]
		for _, i := range active {
			ends := v.holds[i].until
			if ends-y.from > o.ClockError || (ends == y.from && !o.obeys(permitsTouch)) {
				kept = append(kept, i)
				sum += v.weight(i)
			}
		}
		active = append(kept, j)
		pairs += len(active)
		if y.until-y.from > o.ClockError || y.until == y.from {
			most = max(most, sum)
		}
		if sum > limit && y.until-y.from > o.ClockError {
			end := v.overUntil(active, sum, limit)
			found.add(finding{rule: tooMany, x: active[0], y: j, start: y.from, end: max(y.from, min(end, v.h.End))})
		}
		if pairs > maxPairs {
			return most, false
		}
	}
	return most, true
}

func (v *view) weight(i int32) int64 { return int64(v.h.Spans[v.holds[i].span].Permits) }

// overUntil is when so many of the active holds have ended that the rest is within the limit.
func (v *view) overUntil(active []int32, sum, limit int64) time.Duration {
	byEnd := v.sorted(active, func(h *hold) time.Duration { return h.until })
	for _, i := range byEnd {
		if sum -= v.weight(i); sum <= limit {
			return v.holds[i].until
		}
	}
	return v.h.End
}

// permitsViolation tells who had the permits. The proof is the oldest hold
// among them, the grant that was one too many, and what ended the oldest.
func (v *view) permitsViolation(f finding, o Options) Violation {
	x, y := &v.holds[f.x], &v.holds[f.y]
	key, limit := v.h.Keys[y.key], v.h.Limit(y.key)
	w := Violation{Key: key, Rule: "no more permits are out than there are", Events: []int{v.granted(x), v.granted(y)}}
	if f.x == f.y { // it asked for more than there are
		w.Events[0] = int(v.h.Spans[y.span].Invoked)
	} else if x.ended >= 0 && x.ended != v.h.Spans[y.span].Ended {
		w.Events = append(w.Events, int(x.ended))
	}
	var names []string
	sum, promised := int64(0), int64(0)
	for _, i := range v.byKey[y.key] {
		h := &v.holds[i]
		if h.from > y.from || (h.until-y.from <= o.ClockError && i != f.y) || (h.from == y.from && i > f.y) {
			continue
		}
		sum += v.weight(i)
		if h.promisedAt(y.from) {
			promised += v.weight(i)
		}
		w.Clients, w.Owners = append(w.Clients, v.client(h.span)), append(w.Owners, v.h.Owners[h.owner])
		names = append(names, fmt.Sprintf("client %d (%d)", v.client(h.span), v.weight(i)))
	}
	w.Class = OutlivedLease
	if promised > int64(limit) {
		w.Class = BrokenPromise
	}
	w.Text = fmt.Sprintf("%d permits of %s were out for %s (%s to %s), and there are %d: %s", sum, keyName(key),
		long(f.end-f.start), at(f.start), at(f.end), limit, strings.Join(names, ", "))
	return w
}
