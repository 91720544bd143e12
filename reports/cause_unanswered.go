package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Keys without an expiry that requests of unknown outcome leave.

// unansweredNoLease: an acquire, or the release of the last hold, had an unknown outcome, and the key stays without an
// expiry.
func (q *inquiry) unansweredNoLease() *cause {
	h := q.r.History
	if q.property != checker.Leak && q.property != checker.Recovery {
		return nil
	}
	if last := q.unreleased(); last != nil && last.End == checker.ReleaseUnknown {
		kept := q.keptWithoutExpiry(last.From)
		if kept == nil { // the release took effect late, or the lock was granted again meanwhile
			kept = q.keptWithin(interval{last.From, q.v.End - q.r.witness.gap})
		}
		if kept != nil && kept.Time >= q.v.Start {
			return q.unansweredRelease(last, kept)
		}
	}
	for _, u := range h.Unknown {
		asked := &h.Spans[u.Span]
		if (asked.Op != history.OpAcquire && asked.Op != history.OpTry) || q.r.keyName(asked.Key) != q.v.Key ||
			!slices.Contains(q.v.Events, int(asked.Invoked)) {
			continue
		}
		kept := q.keptWithoutExpiry(min(u.Time, q.v.End))
		if kept == nil { // samples may have ended before, or the request came late
			kept = q.keptWithoutExpiry(q.v.Start - q.r.witness.gap)
		}
		if kept == nil {
			continue
		}
		if last, of := q.r.holdNamed(q.v.Key, kept.Keys[q.v.Key].Owner); of && last.Owner != asked.Owner {
			return q.unansweredRelease(last, kept) // the key is of another owner
		}
		client := asked.Process.Client(h.Clients)
		text := fmt.Sprintf("%s asked for %s at %s, with an unknown outcome", clientName(client), quote(q.v.Key),
			q.s.instant(eventAt(asked.Invoked, asked.Call)))
		return q.stays(client, text, interval{asked.Call, u.Time}, kept, int(asked.Invoked))
	}
	return nil
}

// unreleased is the hold that the violation begins with, else the last one of its key; nil if there is none.
func (q *inquiry) unreleased() (last *hold) {
	for i := range q.r.holds {
		if x := &q.r.holds[i]; q.r.keyName(x.Key) == q.v.Key {
			last = x
			if len(q.v.Events) > 0 && q.v.Events[0] == int(x.Granted) {
				break
			}
		}
	}
	return last
}

// unansweredRelease: the outcome of the release of a hold is unknown, and the key of that hold stays.
func (q *inquiry) unansweredRelease(last *hold, kept *history.Sample) *cause {
	h := q.r.History
	for _, u := range h.Unknown {
		rel := &h.Spans[u.Span]
		if rel.Op != history.OpRelease || rel.Owner != last.Owner || rel.Key != last.Key || rel.Call < last.From {
			continue
		}
		return q.stays(last.Client, fmt.Sprintf("%s, granted %s at %s, asked to release it at %s, with an unknown outcome",
			clientName(last.Client), quote(q.v.Key), q.s.instant(last.granted()),
			q.s.instant(eventAt(rel.Invoked, rel.Call))), interval{rel.Call, u.Time}, kept, int(last.Granted), int(rel.Invoked))
	}
	return nil
}

// stays is the cause of a key that stays without an expiry after a request of unknown outcome, which was in flight
// during when.
func (q *inquiry) stays(client int, text string, when interval, kept *history.Sample, events ...int) *cause {
	s := q.s
	c := &cause{}
	name := cluster.ClientName(client)
	for i := range q.r.faults {
		f := &q.r.faults[i]
		hit := f.on(name) || f.on(kept.Node) || strings.HasPrefix(f.target, name+">")
		if hit && !f.is("clock-jump", "clock-drift") && f.effective(when.from, when.until) {
			c.faults = append(c.faults, f)
			text += fmt.Sprintf(" (%s %s at %s, %s)", subject(f.target), faultVerb(f.name), s.instant(f.took()), quote(f.name))
			break
		}
	}
	c.text = fmt.Sprintf("%s, and the key has no expiry: %s still had it at %s", text, kept.Node,
		s.instant(sampleAt(kept))) + q.consequence()
	for _, e := range events {
		c.steps = append(c.steps, q.step(e))
	}
	c.steps = append(c.steps, storyStep{Time: kept.Time, Event: -1, weight: 8,
		Text: fmt.Sprintf("%s still has the key, with no expiry", kept.Node)})
	return c
}
