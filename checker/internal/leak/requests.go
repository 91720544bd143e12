package leak

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/cost"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeQuiet finds requests about a key by a process none of whose clients has held or requested the key for
// QuietAfter, such as renewals of a hold that was released.
func judgeQuiet(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.States(promise.BoundedCost) {
		return
	}
	dis := v.AllDisturbances(o)
	for _, of := range cost.RequestSeries(v) {
		usage := cost.UseTimes(v, &of)
		for key, name := range v.H.Keys {
			for n, u := range usage[key] {
				gap := segment.Of(segment.Later(u.Until, cost.QuietAfter), v.H.End)
				if n+1 < len(usage[key]) {
					gap.Until = usage[key][n+1].From
				}
				count, at := of.Within(gap, name)
				if count < 2 || dis.MayAffect(segment.Of(u.Until, at), excuse.AnyClient, history.AffectsTraffic,
					history.AffectsClients) {
					continue
				}
				cost.AddExcess(v, found, requestsLeft, cost.Excess{
					Rule: "a process that neither holds nor requests a lock sends no requests about it",
					Text: "%[1]s had $lock until $start and did not request it again, but until $end it sent $note %[2]d more " +
						"requests",
					Of: of, Key: int32(key), Span: cost.LastSpan(v, &of, int32(key), u.Until),
					During: segment.Of(u.Until, at), Count: count})
				break
			}
		}
	}
}

// judgeChannels finds processes that are subscribed to more channels than keys that they used in the last LingerAtMost
// explain: a program that takes many locks would stay subscribed to all of them.
func judgeChannels(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.States(promise.BoundedCost) {
		return
	}
	dis := v.AllDisturbances(o)
	for _, of := range cost.RequestSeries(v) {
		usage := [][]segment.Segment(nil)
		for _, p := range of.Points {
			if p.Channels <= cost.FewChannels {
				continue
			}
			if usage == nil {
				usage = cost.UseTimes(v, &of)
			}
			during, recent := segment.Of(p.Sent-cost.LingerAtMost, p.Time), 0
			for _, times := range usage {
				if slices.ContainsFunc(times, func(u segment.Segment) bool {
					return u.Until >= during.From &&
						u.From <= during.Until
				}) {
					recent++
				}
			}
			if p.Channels <= cost.FewChannels+2*recent ||
				dis.MayAffect(during, excuse.AnyClient, history.AffectsTraffic, history.AffectsClients) {
				continue
			}
			cost.AddExcess(v, found, channelsLeft,
				cost.Excess{Rule: "a process is not subscribed for long to what it does not wait for",
					Text: "%[1]s was subscribed to %[2]d channels at $note at $end, although it had used only %[4]s in the " +
						format.Duration(cost.LingerAtMost) + " before",
					Of: of, Key: refs.None, Span: cost.LastSpan(v, &of, refs.None, p.Time), During: during, Count: p.Channels,
					Allowed: recent})
			break
		}
	}
}
