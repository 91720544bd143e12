// Package segment computes with intervals of time.
package segment

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

func AppendLonger(list []Segment, s Segment, least time.Duration) []Segment {
	if s.Until-s.From <= least {
		return list
	}
	return append(list, s)
}

// MergedSegments sorts all and joins overlapping ones.
func MergedSegments(all []Segment) (out []Segment) {
	slices.SortFunc(all, func(a, b Segment) int { return cmp.Compare(a.From, b.From) })
	for _, s := range all {
		if n := len(out) - 1; n >= 0 && s.From <= out[n].Until {
			out[n].Until = max(out[n].Until, s.Until)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Later is t+d, or never.
func Later(t, d time.Duration) time.Duration {
	if d > 0 && t > Never-d {
		return Never
	}
	return t + d
}

// LongestOutside is the longest part of s outside the segments of all lists.
func LongestOutside(s Segment, without ...[]Segment) Segment {
	best := Segment{s.From, s.From}
	var near []Segment
	for _, list := range without {
		for _, w := range list {
			if w.Until > s.From && w.From < s.Until {
				near = append(near, w)
			}
		}
	}
	EachOutside(s, Merged(near), func(part Segment) {
		if part.Until-part.From > best.Until-best.From {
			best = part
		}
	})
	return best
}

// EachOutside visits the parts of s outside the segments of without, which are sorted by their beginnings.
func EachOutside(s Segment, without []Segment, visit func(part Segment)) {
	for _, w := range without {
		if w.Until <= s.From || w.From >= s.Until {
			continue
		}
		if w.From > s.From {
			visit(Segment{s.From, w.From})
		}
		s.From = w.Until
	}
	if s.From < s.Until {
		visit(s)
	}
}

// Within returns the segments that overlap s, of disjoint ones in order of time.
func Within(all []Segment, s Segment) []Segment {
	first := sort.Search(len(all), func(n int) bool { return all[n].Until >= s.From })
	last := sort.Search(len(all), func(n int) bool { return all[n].From > s.Until })
	return all[first:max(first, last)]
}

// Merged is all lists in one, sorted.
func Merged(lists ...[]Segment) []Segment {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(x, y Segment) int { return cmp.Compare(x.From, y.From) })
	return all
}

const Never = history.Infinity

// Segment is an interval, [From, until).
type Segment struct{ From, Until time.Duration }

// Of is the segment from one instant to another.
func Of(from, until time.Duration) Segment { return Segment{from, until} }

// Text is "for 3.00 s (1.000 s to 4.000 s)", or "at 4.000 s" if it has no length, as at the end of a history.
func (s Segment) Text() string {
	if s.Until == s.From {
		return "at " + format.Instant(s.From)
	}
	return fmt.Sprintf("for %s (%s to %s)", format.Duration(s.Until-s.From), format.Instant(s.From),
		format.Instant(s.Until))
}
