package checker

import "slices"

// checkLeaseExclusion looks for holds that overlap inside the validity promised to both. Only such an overlap breaks
// a promise of the lock: a client that is paused past its lease overlaps with the next holder under every lease-based
// lock (Kleppmann 2016), which is why there are two properties.
//
// It is the sweep of exclusion.go over shorter intervals: a promise begins when the client received it, and ends at
// its end or with belief. So an overlap is certain, up to Options.ClockError.
func checkLeaseExclusion(v *view, o Options) Result {
	found := newFindings(o)
	all := v.overlaps(v.exclusive(o), func(x, y int32, s segment) {
		p := v.bothPromised(&v.holds[x], &v.holds[y], s)
		if p.until-p.from > o.ClockError || !o.applies(leasesOver) {
			found.add(finding{x: x, y: y, start: p.from, end: v.clipped(p)})
		}
	})
	r := found.result(LeaseExclusion, func(f finding) Violation {
		w := v.pairViolation(&v.holds[f.x], &v.holds[f.y], segment{f.start, f.end})
		w.Rule = "no two owners are promised the lock at the same time"
		w.Class = BrokenPromise
		w.Text += ", inside the validity promised to both" + v.countedLeases(&v.holds[f.x], &v.holds[f.y])
		return w
	})
	r = v.holdsResult(r, all, " inside the validity promised to both")
	if r.Outcome == Holds && !slices.ContainsFunc(v.holds, func(h hold) bool { return h.promised() }) {
		r.Outcome, r.Summary = NotApplicable, nothingPromised
	}
	return r
}
