package wakeup

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/cost"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeHerds finds processes with several waiting clients that sent more requests about a key than their operations
// need plus one for each time that the lock became free: such a process woke waiters that could not be granted the
// lock. A history with faults is not judged, because requests without a reply are resent. Nor is a key about which
// several servers were asked: masters that have no common queue are polled.
func judgeHerds(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.States(promise.BoundedCost) || o.Kind() == property.ReadersWriterLock || len(v.FaultTimes()) > 0 {
		return
	}
	sums := make(map[[2]int32]*cost.Excess) // by process and key
	var order []*cost.Excess
	for _, of := range cost.RequestSeries(v) {
		if of.Clients < 2 {
			continue
		}
		for key, name := range v.H.Keys {
			count := of.Points[len(of.Points)-1].Keys[name]
			at := [2]int32{int32(of.Client), int32(key)}
			switch {
			case count == 0:
			case sums[at] != nil:
				sums[at].Span = refs.None // it asks several masters: see AddExcess
			default:
				sums[at] = &cost.Excess{Rule: "a release wakes no more waiters of a process than can be granted the lock",
					Text: "%[1]s sent $note %[2]d requests about $lock by $end, where its operations and the releases need at " +
						"most %[3]d", Of: of, Key: int32(key), Span: cost.LastSpan(v, &of, int32(key), v.H.End),
					During: segment.Of(0, of.Points[len(of.Points)-1].Time), Count: count}
				order = append(order, sums[at])
			}
		}
	}
	for _, x := range order {
		if x.Allowed = cost.RequestsNeeded(v, &x.Of, x.Key, o); x.Count > x.Allowed {
			cost.AddExcess(v, found, wokenTooMany, *x)
		}
	}
}

// judgeStorms finds, for each process, the first second in which it sent a server more requests than its operations
// need, or tried to connect as often: a waiter that asks again and again without a pause.
func judgeStorms(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.States(promise.BoundedCost) {
		return
	}
	for _, of := range cost.RequestSeries(v) {
		of.EachWindow(time.Second, func(a, b *cost.RequestPoint, during segment.Segment) (more bool) {
			count := b.Dials + b.Commands - a.Dials - a.Commands
			allowed := int(float64(of.Clients*cost.RequestsPerSecond) * (during.Until - during.From).Seconds())
			if count <= allowed {
				return true
			}
			if allowed += cost.RequestsPerOp * cost.OpsOf(v, &of, during); count <= allowed {
				return true
			}
			cost.AddExcess(v, found, requestStorm, cost.Excess{Rule: "a waiter pauses between its requests",
				Text: "%[1]s sent $note %[2]d requests and attempts to connect from $start to $end; its operations need at most " +
					"%[3]d",
				Of: of, Key: refs.None, Span: cost.LastSpan(v, &of, refs.None, b.Time), During: during, Count: count,
				Allowed: allowed})
			return false
		})
	}
}

// judgeDials finds, for each process, the first time in which it tried to connect to a server more often than a client
// with pauses between its attempts: many such clients keep a server from coming back. A quorum is not judged: a master
// that did not reply is asked to release for a while after the operation has returned.
func judgeDials(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.States(promise.BoundedCost) || v.Quorum {
		return
	}
	for _, of := range cost.RequestSeries(v) {
		of.EachWindow(cost.DialsWindow, func(a, b *cost.RequestPoint, during segment.Segment) (more bool) {
			count := b.Dials - a.Dials
			if count <= int(cost.DialsPerSecond*(during.Until-during.From).Seconds()) {
				return true
			}
			allowed := int(cost.DialsPerSecond * cost.BusyTime(v, &of, during).Seconds())
			if count <= allowed {
				return true
			}
			cost.AddExcess(v, found, dialStorm, cost.Excess{Rule: "a process pauses before it connects again",
				Text: "%[1]s tried %[2]d times to connect to $note from $start to $end; its operations and holds need at most " +
					"%[3]d",
				Of: of, Key: refs.None, Span: cost.LastSpan(v, &of, refs.None, b.Time), During: during, Count: count,
				Allowed: allowed})
			return false
		})
	}
}
