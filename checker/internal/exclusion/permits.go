package exclusion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of permits.
const (
	TooMany       = iota // more permits held than exist
	wrongChange          // a change of the number of permits counts wrongly
	refusedChange        // a change was refused although there are enough permits to remove
	PermitsTouch         // acquits: one hold ends at the instant at which the next begins
)

func PermitsRules() finding.Rules {
	return finding.Rules{
		TooMany: {Name: "too-many"}, wrongChange: {Name: "miscounted-change"},
		refusedChange: {Name: "refused-change"}, PermitsTouch: {Name: "touching"},
	}
}

// CheckPermits adds up the permits that are held at once: the sweep of exclusion.go with weights.
//
// Permits are held at least from acquire returned to release invoked, except for permits that were released before the
// rest. If these cores never add up to more than the permits of the key, it is a legal order to grant each hold at its
// latest and to end it at its earliest, because that leaves the most permits at every instant at once; if they do add
// up to more, no order is legal. So it is exact for acquires that wait (with failed tries the question can be NP-hard,
// so they are not used). If an owner acquires permits several times, each time is a hold of its own, and a release
// returns the permits of the latest.
//
// The number of permits is in the history (limit, on an acquire or a resize) or in [property.Options] Permits. A
// semaphore that is made smaller keeps the permits that are held: so a grant is compared with the greatest size that
// may have been in force between its invocation and its return, when the last of the holds at its return was granted.
func CheckPermits(v *bounds.View, o given.Options) property.Result {
	found := finding.New(o)
	keys, unknown, most, all := 0, "", int64(0), true
	for key, holds := range v.ByKey {
		limit := v.H.Limit(int32(key))
		if limit == 0 || len(holds) == 0 {
			continue
		}
		keys++
		if limit == history.UnknownLimit {
			unknown = finding.LockName(v.H.Keys[key])
			continue
		}
		out, whole := CountPermits(v, holds, o, found)
		most, all = max(most, out), all && whole
	}
	judgeSizeChanges(v, o, found)
	r := found.Result(property.Permits, func(f finding.Finding) property.Violation {
		if f.Rule == wrongChange || f.Rule == refusedChange {
			return changeViolation(v, f)
		}
		return permitsViolation(v, f, o)
	})
	r.Counts = map[string]int64{"semaphores": int64(keys), "most_held": most}
	switch {
	case !all:
		r.Summary += fmt.Sprintf(" (at least: counting stopped after %d pairs)", MaxPairs)
	case r.Outcome == property.Violated:
	case keys == 0 && v.Unjudged(func(s *history.Span) bool { return v.H.Limit(s.Key) != 0 }):
		r.Outcome, r.Summary = property.Undecided, ledger.UnknownHolds(v.UnknownCounts)
	case keys == 0:
		r.Outcome, r.Summary = property.NotApplicable, finding.NoSemaphore
	case unknown != "":
		r.Outcome = property.Undecided
		r.Summary = UnknownSize(unknown)
	case v.UnknownOwners > 0:
		r.Outcome = property.Undecided
		r.Summary = ledger.UnknownHolds(v.UnknownCounts)
	default:
		r.Summary = fmt.Sprintf("at most %s %s held at once, not more than exist", format.Count(most, "permit"),
			finding.Either(most == 1, "was", "were"))
	}
	return r
}

// Unsized is a semaphore whose number of permits is unknown; "" if there is none.
func Unsized(v *bounds.View) string {
	for key, name := range v.H.Keys {
		if v.H.Limit(int32(key)) == history.UnknownLimit {
			return finding.LockName(name)
		}
	}
	return ""
}

// UnknownSize is the text for a semaphore whose number of permits is unknown.
func UnknownSize(name string) string {
	return fmt.Sprintf("the number of permits of %s is unknown: give every acquire a limit, or use --permits", name)
}

// OverUntil is until when, inside s, the active holds exceed the limit.
func OverUntil(v *bounds.View, active []int32, limit int64, s segment.Segment) time.Duration {
	var backs []ledger.PartialReturn
	sum := int64(0)
	for _, i := range active {
		v.EachReturn(i, func(p ledger.PartialReturn) { backs = append(backs, p) })
		sum += v.Weight(i)
	}
	slices.SortFunc(backs, func(a, b ledger.PartialReturn) int { return cmp.Compare(a.At, b.At) })
	until := min(s.Until, max(s.From, v.H.End))
	for _, b := range backs {
		if sum -= int64(b.Permits); b.At > s.From && sum <= limit {
			return min(b.At, until)
		}
	}
	return until
}

// permitsViolation names the holders of the permits. The evidence is the oldest of these holds, the grant that
// exceeded the limit, and the end of the oldest.
func permitsViolation(v *bounds.View, f finding.Finding, o given.Options) property.Violation {
	x, y := &v.Holds[f.X], &v.Holds[f.Y]
	key := v.H.Keys[y.Key]
	_, limit := v.SizesIn(y.Key, segment.Of(y.Asked, y.From))
	w := property.Violation{Key: key, Rule: "no more permits are held than exist",
		Events: []int{v.Granted(x), v.Granted(y)}}
	if f.X == f.Y { // it requested more than exist
		w.Events[0] = int(v.H.Spans[y.Span].Invoked)
	} else if x.EndEvent >= 0 && x.EndEvent != v.H.Spans[y.Span].Ended {
		w.Events = append(w.Events, int(x.EndEvent))
	}
	c := CrowdAt(v, f.Y, o)
	w.Clients, w.Owners = c.clients, c.owners
	w.Class = CrowdClass(v, y, o)
	w.Text = fmt.Sprintf("%d permits of %s were held %s, but only %d exist: %s", c.Permits, finding.LockName(key),
		segment.Of(f.Start, f.End).Text(), limit, strings.Join(c.Names, ", "))
	return w
}

// crowd are the holders of permits when one of them was granted its own, in the order of their grants.
type crowd struct {
	Names, owners []string
	clients       []int
	Permits       int64
}

// CrowdAt are the holders of permits when hold y began, and y itself.
func CrowdAt(v *bounds.View, y int32, o given.Options) (c crowd) {
	last := &v.Holds[y]
	for i, h := range refs.At(v.Holds, v.ByKey[last.Key]) {
		out := v.OutAfter(i, last.From, o.ClockError)
		if i == y {
			out = v.Weight(i)
		}
		if h.From > last.From || out == 0 || (h.From == last.From && i > y) {
			continue
		}
		c.Permits += out
		c.clients, c.owners = append(c.clients, v.Client(h.Span)), append(c.owners, v.H.Owners[h.Owner])
		c.Names = append(c.Names, fmt.Sprintf("client %d (%d)", v.Client(h.Span), out))
	}
	return c
}

// CrowdClass is a broken promise only if more permits were promised when y was granted than exist.
func CrowdClass(v *bounds.View, y *ledger.Hold, o given.Options) property.Class {
	promised := int64(0)
	for i, h := range refs.At(v.Holds, v.ByKey[y.Key]) {
		switch {
		case h == y:
			promised += v.Weight(i)
		case h.From <= y.From && h.PromisedAt(y.From) && y.From < v.UnrenewedFrom(h):
			promised += v.OutAfter(i, y.From, o.ClockError)
		}
	}
	if _, limit := v.SizesIn(y.Key, segment.Of(y.Asked, y.From)); promised > limit {
		return property.BrokenPromise
	}
	return property.OutlivedLease
}
