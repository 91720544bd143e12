package exclusion

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of readers-writer.
const (
	twoWriters   = iota // a writer with a writer
	readerWriter        // a writer with a reader
	readersMay          // acquits: a reader with a reader
)

func ReadersWriterRules() finding.Rules {
	return finding.Rules{
		twoWriters: {Name: "two-writers"}, readerWriter: {Name: "writer-with-reader"},
		readersMay: {Name: "readers-share"},
	}
}

// CheckReadersWriter looks for a writer that held the lock at the same time as another owner, at keys with readers.
//
// It is the sweep of exclusion.go, and exact for the same reason: a legal order of a readers-writer lock exists if
// and only if no writer's core overlaps another core, because to grant each hold at its latest and to end it at its
// earliest makes all overlaps as short as possible. Exclusion finds the same overlaps; here the modes of the holds
// are reported.
func CheckReadersWriter(v *bounds.View, o given.Options) property.Result {
	found := finding.New(o)
	readers, writers := 0, 0
	has := make([]bool, len(v.ByKey))
	for i := range v.Holds {
		if v.Holds[i].Reader {
			has[v.Holds[i].Key] = true
			readers++
		}
	}
	var all bool
	if readers > 0 {
		for i := range v.Holds {
			if has[v.Holds[i].Key] && !v.Holds[i].Reader {
				writers++
			}
		}
		all = overlaps(v, overlapQuery{slack: o.ClockError, end: beliefEnd, share: o.Applies(readersMay), keys: has},
			func(x, y int32, s segment.Segment) {
				rule := readerWriter
				if !v.Holds[x].Reader && !v.Holds[y].Reader {
					rule = twoWriters
				}
				found.Add(finding.Finding{Rule: rule, X: x, Y: y, Start: s.From, End: v.Clipped(s)})
			})
	}
	r := found.Result(property.ReadersWriter, func(f finding.Finding) property.Violation {
		x, y := &v.Holds[f.X], &v.Holds[f.Y]
		class, why := Blame(v, x, y, segment.Of(f.Start, f.End), o)
		w := PairViolation(v, x, y, segment.Of(f.Start, f.End))
		w.Rule, w.Class = "a writer holds the lock alone", class
		w.Text += " (" + finding.Either(x.Reader, "reader", "writer") + " and " +
			finding.Either(y.Reader, "reader", "writer") + ")" + why
		return w
	})
	if readers == 0 && v.Unjudged(func(s *history.Span) bool { return !s.Write }) {
		r.Outcome, r.Summary = property.Undecided, ledger.UnknownHolds(v.UnknownCounts)
		return r
	}
	if readers == 0 {
		r.Outcome, r.Summary = property.NotApplicable, finding.NoReader
		return r
	}
	r = holdsResult(v, r, all, "")
	r.Counts["readers"], r.Counts["writers"] = int64(readers), int64(writers)
	if r.Outcome == property.Holds {
		r.Summary = fmt.Sprintf("%s and %s, no writer at the same time as another owner", format.Count(readers, "reader"),
			format.Count(writers, "writer"))
	}
	return r
}
