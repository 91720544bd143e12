package waiting

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// WaitRules are the numbers of the rules of a property that judges waits: the rule that convicts, and the two that
// excuse a wait by an outage or by a pause of its client.
type WaitRules struct{ Convict, Outage, Paused int }

// UnservedWaits finds the waits that were not served although the key was free for one of the causes: for each gap
// the longest part of a wait that nothing excuses. It returns how many waits overlapped such gaps.
func UnservedWaits(v *bounds.View, o given.Options, e WaitRules, found *finding.Findings, causes ...bounds.Cause) int {
	if v.Quorum && o.SimPriorities && o.Applies(e.Outage) {
		o.MayBeDown = 0
	}
	d, excuses := v.FreeTimes(), v.ExcusesFor(o)
	left, kept, writers := leftByClose(v), v.KeptByMultiAcquires(o), lingeringWriters(v, o)
	met := 0
	for n := 0; n < len(d.Waits); {
		g := &d.Gaps[d.Waits[n].Gap]
		best := finding.Finding{Rule: e.Convict, X: g.Last, Y: -1}
		first := d.Waits[n].Gap
		away := o.ExcusedBy(e.Outage, excuses(excuse.Scope{Key: g.Key}).Away.Windows)
		for ; n < len(d.Waits) && d.Waits[n].Gap == first; n++ {
			if !slices.Contains(causes, g.Cause) {
				continue
			}
			met++
			s, client := &v.H.Spans[d.Waits[n].Span], v.Client(d.Waits[n].Span)
			wait := segment.Of(max(g.From, s.Call), min(g.Until, s.Return))
			if at, is := left[g.Key]; is && o.Applies(e.Outage) {
				wait.Until = max(wait.From, min(wait.Until, at))
			}
			ahead := kept(d.Waits[n].Span)
			if !s.Write {
				ahead = segment.Merged(ahead, writers[g.Key])
			}
			p := segment.LongestOutside(wait, away, o.ExcusedBy(e.Paused, v.ClientPauses()[client]), ahead)
			if p.Until-p.From > best.End-best.Start {
				best.Y, best.Start, best.End = d.Waits[n].Span, p.From, p.Until
			}
		}
		if best.Y >= 0 && best.End-best.Start > o.Slack() {
			found.Add(best)
		}
	}
	return met
}

// leftByClose is, by key, from when on a minority of a quorum may keep a released hold until its lease ends: a fault
// was in force when a client released it, and again or still when the client closed its lock object, which was the last
// time that it sent the release.
func leftByClose(v *bounds.View) map[int32]time.Duration {
	if !v.Quorum || !v.HasRare(func(s *history.Span) bool { return s.Op == history.OpReopen }) {
		return nil
	}
	left, released := make(map[int32]time.Duration), make(map[int]map[int32]bool)
	faults := excuse.Disturbances{Times: v.FaultTimes()}
	for i := range v.H.Spans {
		s, client := &v.H.Spans[i], v.Client(int32(i))
		if s.Op != history.OpRelease && s.Op != history.OpReopen {
			continue
		}
		met := faults.Any(segment.Of(s.Call, s.Return), func(f *excuse.FaultTime) bool {
			return f.Client() < 0 || f.Client() == client
		})
		switch {
		case s.Op == history.OpReopen:
			for key := range released[client] {
				if at, is := left[key]; met && (!is || s.Call < at) {
					left[key] = s.Call
				}
			}
			delete(released, client)
		case met:
			if released[client] == nil {
				released[client] = make(map[int32]bool)
			}
			released[client][s.Key] = true
		}
	}
	return left
}

// HadEnded says that the last hold, or the acquire that may be it, had ended by t, although the lock is not free.
func HadEnded(v *bounds.View, last int32, t time.Duration) string {
	s := &v.H.Spans[last]
	client := s.Process.Client(v.H.Clients)
	if s.Outcome == history.OK {
		return fmt.Sprintf(", although the last hold, by client %d, had ended by %s", client, format.Instant(t))
	}
	return fmt.Sprintf(", although nobody can have held it since %s: the outcome of the last acquire, by client %d, is "+
		"unknown, and its lease had ended by then", format.Instant(t), client)
}
