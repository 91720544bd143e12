package leak

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/history"
)

// judgeMorePermits finds, for each semaphore, the first sample with more permits than its clients can have: permits of
// holds that may last, of acquires of unknown outcome, and of requests that failed less than the slack before, except
// refused tries. A lock whose grants have no validity may keep unreleased permits without an end.
func judgeMorePermits(v *bounds.View, o given.Options, found *finding.Findings) {
	seen := v.Samples()
	if seen == nil {
		return
	}
	dis, sums, end := v.AllDisturbances(o), make(map[int32]*waiting.OccupancySums), v.LastActivity()
	seen.PermitSamples(func(key int32, x *history.Sample, kept int64) bool {
		if x.Time > end { // the harness acquires it as well
			return false
		}
		if kept == 0 {
			return true
		}
		if sums[key] == nil {
			all := waiting.NewOccupancySums(waiting.MayHavePermits(v, key, o))
			sums[key] = &all
		}
		sum := sums[key].In(segment.Of(x.Sent, x.Time)).Permits
		if kept <= sum {
			return true
		}
		if dis.MayAffect(segment.Of(0, x.Time), excuse.AnyClient, history.AffectsData) {
			return false
		}
		if span := finding.LastRequest(v, key, x.Sent); span != refs.None {
			found.Add(finding.Finding{Rule: permitsKept, X: refs.None, Y: span, Start: x.Time, End: x.Time,
				Note: fmt.Sprintf("%s, but clients can have only %d", finding.KeptPermits(v, x, key), sum)})
		}
		return false
	})
}
