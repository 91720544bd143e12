package exclusion

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
)

// CheckLeases looks for holds that overlap inside the validity promised to both. Only such an overlap breaks
// a promise of the lock: a client that is paused past its lease overlaps with the next holder under every lease-based
// lock (Kleppmann 2016), which is why there are two properties.
//
// It is the sweep of exclusion.go over shorter intervals: a promise begins when the client received it, and ends at
// its end or with belief. So an overlap is certain, up to Options.ClockError.
func CheckLeases(v *bounds.View, o given.Options) property.Result {
	found := finding.New(o)
	all := overlaps(v, exclusive(v, o), func(x, y int32, s segment.Segment) {
		p := v.BothPromised(&v.Holds[x], &v.Holds[y], s)
		if p.Until-p.From > o.ClockError || !o.Applies(leasesOver) {
			found.Add(finding.Finding{X: x, Y: y, Start: p.From, End: v.Clipped(p)})
		}
	})
	r := found.Result(property.LeaseExclusion, func(f finding.Finding) property.Violation {
		w := PairViolation(v, &v.Holds[f.X], &v.Holds[f.Y], segment.Of(f.Start, f.End))
		w.Rule = "no two owners are promised the lock at the same time"
		w.Class = property.BrokenPromise
		w.Text += ", inside the validity promised to both" + v.CountedLeases(&v.Holds[f.X], &v.Holds[f.Y])
		return w
	})
	r = holdsResult(v, r, all, " inside the validity promised to both")
	if r.Outcome == property.Holds && !slices.ContainsFunc(v.Holds, func(h ledger.Hold) bool { return h.Promised() }) {
		r.Outcome, r.Summary = property.NotApplicable, finding.NothingPromised
	}
	return r
}
