// Package wakeup judges whether waiters are served, and whether operations take as long as they may.
package wakeup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeCapacity looks for requests that were refused, or waited for longer than the slack, although the lock had
// capacity for them.
func judgeCapacity(v *bounds.View, o given.Options, found *finding.Findings) {
	gaveUp := make(map[int32]bool, len(v.H.TimedOut))
	for _, list := range [][]int32{v.H.TimedOut, v.H.Unanswered} {
		for _, i := range list {
			gaveUp[i] = true
		}
	}
	for _, k := range waiting.SharedKeys(v) {
		waiting.RefusedTries(v, &k, o, func(span int32, taken int64) {
			s := &v.H.Spans[span]
			why := "no client can have held it at the time"
			switch size, _ := v.SizesIn(s.Key, segment.Of(s.Call, s.Return)); {
			case k.Semaphore:
				why = fmt.Sprintf("others can have had only %d of %d", taken, size)
			case !s.Write:
				why = "no client can have written at the time"
			}
			found.Add(finding.Finding{Rule: tryRefused, X: int32(taken), Y: span, Start: s.Call, End: s.Return, Note: why})
		})
		waitedWithCapacity(v, &k, gaveUp, o, func(span int32, s segment.Segment) {
			why := finding.Either(k.Semaphore, "so many were free", "no client wrote or waited to write")
			found.Add(finding.Finding{Rule: notAdmitted, X: refs.None, Y: span, Start: s.From, End: s.Until, Note: why})
		})
	}
}

// waitedWithCapacity visits the acquires that waited for longer than the slack, in one part in which there was room for
// them, the servers were available and their clients ran: of readers, and for permits. gaveUp are acquires whose wait
// ran out.
func waitedWithCapacity(v *bounds.View, k *waiting.SharedKey, gaveUp map[int32]bool, o given.Options,
	visit func(span int32, s segment.Segment)) {
	slack := o.Slack()
	long := slices.DeleteFunc(slices.Clone(k.Requests), func(i int32) bool {
		s := &v.H.Spans[i]
		_, most := v.SizesIn(k.Key, segment.Of(s.Call, s.Return))
		return s.Op != history.OpAcquire || s.Return-s.Call <= slack || !k.Semaphore && s.Write ||
			k.Semaphore && int64(s.Permits) > most || s.Outcome != history.OK && !gaveUp[i]
	})
	if len(long) == 0 {
		return
	}
	r := waiting.NewCapacitySweep(v, k, o)
	away := v.Outages(o)
	gaps := make(map[int64][]segment.Segment) // by permits
	for i, s := range refs.At(v.H.Spans, long) {
		permits := int64(0)
		if o.States(promise.NoHeadOfLineBlocking) && k.Semaphore {
			permits = int64(s.Permits)
		}
		list, known := gaps[permits]
		if !known && len(gaps) < waiting.MaxSizes {
			list = r.Gaps(permits, slack)
			gaps[permits] = list
		}
		first, _ := slices.BinarySearchFunc(list, s.Call, func(g segment.Segment, t time.Duration) int {
			return cmp.Compare(g.Until, t)
		})
		pauses := v.ClientPauses()[v.Client(i)]
		for _, g := range list[first:] {
			if g.From >= s.Return {
				break
			}
			wait := segment.Of(max(g.From, s.Call), min(g.Until, s.Return))
			p := segment.LongestOutside(wait, away.Windows, pauses)
			if p.Until-p.From > slack && o.States(promise.Fair) && o.Applies(wakeAhead) {
				p = segment.LongestOutside(wait, away.Windows, pauses, waiting.ServedBefore(v, k, s, o))
			}
			if p.Until-p.From > slack {
				visit(i, p)
				break
			}
		}
	}
}
