package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of readers-writer.
const (
	twoWriters   = iota // a writer with a writer
	readerWriter        // a writer with a reader
	readersMay          // acquits: a reader with a reader
)

func readersWriterRules() []string {
	return []string{twoWriters: "two-writers", readerWriter: "writer-with-reader", readersMay: "readers-share"}
}

// checkReadersWriter looks for a writer that held the lock at the same time as another owner, at keys with readers.
//
// It is the sweep of exclusion.go, and exact for the same reason: a legal order of a readers-writer lock exists if
// and only if no writer's core overlaps another core, because to grant each hold at its latest and to end it at its
// earliest makes all overlaps as short as possible. Exclusion finds the same overlaps; here the modes of the holds
// are reported.
func checkReadersWriter(v *view, o Options) Result {
	found := newFindings(o)
	readers, writers := 0, 0
	has := make([]bool, len(v.byKey))
	for i := range v.holds {
		if v.holds[i].reader {
			has[v.holds[i].key] = true
			readers++
		}
	}
	var all bool
	if readers > 0 {
		for i := range v.holds {
			if has[v.holds[i].key] && !v.holds[i].reader {
				writers++
			}
		}
		all = v.overlaps(overlapQuery{slack: o.ClockError, end: beliefEnd, share: o.applies(readersMay), keys: has},
			func(x, y int32, s segment) {
				rule := readerWriter
				if !v.holds[x].reader && !v.holds[y].reader {
					rule = twoWriters
				}
				found.add(finding{rule: rule, x: x, y: y, start: s.from, end: v.clipped(s)})
			})
	}
	r := found.result(ReadersWriter, func(f finding) Violation {
		x, y := &v.holds[f.x], &v.holds[f.y]
		class, why := v.blame(x, y, segment{f.start, f.end}, o)
		w := v.pairViolation(x, y, segment{f.start, f.end})
		w.Rule, w.Class = "a writer holds the lock alone", class
		w.Text += " (" + either(x.reader, "reader", "writer") + " and " + either(y.reader, "reader", "writer") + ")" + why
		return w
	})
	if readers == 0 && v.unjudged(func(s *history.Span) bool { return !s.Write }) {
		r.Outcome, r.Summary = Undecided, unknownHolds(v.unknownCounts)
		return r
	}
	if readers == 0 {
		r.Outcome, r.Summary = NotApplicable, noReader
		return r
	}
	r = v.holdsResult(r, all, "")
	r.Counts["readers"], r.Counts["writers"] = int64(readers), int64(writers)
	if r.Outcome == Holds {
		r.Summary = fmt.Sprintf("%s and %s, no writer at the same time as another owner", format.Count(readers, "reader"),
			format.Count(writers, "writer"))
	}
	return r
}
