package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Causes that lie with how a lock handles single requests: a late reply, a repeated request, a re-entry, a release for
// an owner that holds nothing.

func lateGrantMechanism() mechanism {
	return mechanism{name: "late-reply-accepted", find: findLateGrant, advice: []adviceItem{{
		Text: "Count the validity from before the request is sent, and release the lock if no validity is left when the " +
			"reply arrives.",
		Cost: "an acquire fails when its reply is late",
	}}}
}

func ownKeyMechanism() mechanism {
	return mechanism{name: "refused-by-own-key", find: findOwnKey, advice: []adviceItem{{
		Text: "When a request is sent again, compare the stored value: if it is that of this acquire, the lock was " +
			"granted. An acquire that gives up has to remove what it may have set.",
		Cost: "a script instead of SET; a request for each acquire that gives up",
	}}}
}

func shortenedMechanism() mechanism {
	return mechanism{name: "lease-shortened", find: findShortened, advice: []adviceItem{{
		Text: "A re-entry, or the release of an inner level, must not shorten the lease: the key has to last until the " +
			"latest deadline that was promised to its owner.",
		Cost: "the script has to read the time to live before it sets it",
	}}}
}

// findLateGrant: an acquire succeeded after the end of the validity that it reported.
func findLateGrant(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Honesty {
		return nil
	}
	h := q.r.History
	for i := range h.Spans {
		x := &h.Spans[i]
		if (x.Op != history.OpAcquire && x.Op != history.OpTry) || !x.Expired || q.r.keyName(x.Key) != q.v.Key ||
			!slices.Contains(q.v.Events, int(x.Ended)) {
			continue
		}
		s, client := q.s, x.Process.Client(h.Clients)
		c := &cause{text: fmt.Sprintf("%s asked for %s at %s and was granted it by a reply at %s, when its validity had "+
			"ended", clientName(client), quote(q.v.Key), s.instant(eventAt(x.Invoked, x.Call)),
			s.instant(eventAt(x.Ended, x.Return))), steps: []storyStep{q.step(int(x.Invoked))}}
		for k := range q.r.faults {
			f := &q.r.faults[k]
			hit := !isClient(f.target) || f.on(cluster.ClientName(client)) ||
				strings.HasPrefix(f.target, cluster.ClientName(client)+">")
			if hit && f.is(append(delayFaults(), "partition", "isolate", "unplug", "partition-one-way", "pause-client",
				"grant-reply-late", "packet-late", "busy-script")...) && f.effective(x.Call, x.Return) {
				c.faults = append(c.faults, f)
				c.text += fmt.Sprintf("; %s %s", subject(f.target), q.during(f))
				break
			}
		}
		return c
	}
	return nil
}

// findOwnKey: an acquire was refused, and a server has the key for the owner that it names.
func findOwnKey(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Leak {
		return nil
	}
	h := q.r.History
	for i := range h.Spans {
		x := &h.Spans[i]
		if (x.Op != history.OpAcquire && x.Op != history.OpTry) || x.Outcome != history.Fail ||
			q.r.keyName(x.Key) != q.v.Key || !slices.Contains(q.v.Events, int(x.Ended)) {
			continue
		}
		owner := q.r.ownerName(x.Owner)
		for _, node := range q.r.witness.nodes {
			samples := q.r.witness.during(node, x.Return, max(q.v.End, q.r.History.End))
			n := slices.IndexFunc(samples, func(y history.Sample) bool { return has(&y, q.v.Key, owner) })
			if n < 0 {
				continue
			}
			return q.ownKey(x, &samples[n])
		}
	}
	return nil
}

func (q *inquiry) ownKey(x *history.Span, kept *history.Sample) *cause {
	s, client := q.s, x.Process.Client(q.r.History.Clients)
	c := &cause{text: fmt.Sprintf("%s asked for %s at %s and was refused it at %s, although a request of the same "+
		"acquire had set the key: %s had it for that owner, %s, at %s", clientName(client), quote(q.v.Key),
		s.instant(eventAt(x.Invoked, x.Call)), s.instant(eventAt(x.Ended, x.Return)), kept.Node,
		quote(q.r.ownerName(x.Owner)), s.instant(sampleAt(kept)))}
	c.steps = []storyStep{q.step(int(x.Invoked)), {Time: kept.Time, Event: -1, weight: 9,
		Text: fmt.Sprintf("%s has the key for the owner that was refused", kept.Node)}}
	for i := range q.r.faults {
		f := &q.r.faults[i]
		hit := !isClient(f.target) || f.on(cluster.ClientName(client))
		unanswered := strings.Contains(f.name, "reply") ||
			f.is("packet-lost", "packet-late", "connection-reset", "silent-connections")
		if hit && unanswered && f.effective(x.Call, x.Return) {
			c.faults = append(c.faults, f)
			c.text += fmt.Sprintf("; %s %s", subject(f.target), q.during(f))
			break
		}
	}
	return c
}

// findShortened: a later request of the same owner made the lease end before the end that was promised.
func findShortened(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Honesty {
		return nil
	}
	h := q.r.History
	promised := (*history.Span)(nil)
	for i := range h.Spans {
		x := &h.Spans[i]
		switch {
		case x.Outcome != history.OK || q.r.keyName(x.Key) != q.v.Key || x.Return > q.v.Start:
		case x.Valid == q.v.End && slices.Contains(q.v.Events, int(x.Ended)):
			promised = x
		case promised != nil && x.Owner == promised.Owner && x.Call >= promised.Return && x.Op != history.OpOther:
			return q.shortened(promised, x)
		}
	}
	return nil
}

func (q *inquiry) shortened(promised, later *history.Span) *cause {
	s := q.s
	until := point{Event: int(promised.Ended), Until: true, Time: promised.Valid}
	c := &cause{text: fmt.Sprintf("%s was promised %s until %s at %s; its next %s, at %s, set a lease that ended before "+
		"that", clientName(promised.Process.Client(q.r.History.Clients)), quote(q.v.Key), s.instant(until),
		s.instant(eventAt(promised.Ended, promised.Return)), later.Op, s.instant(eventAt(later.Invoked, later.Call)))}
	owner := q.r.ownerName(promised.Owner)
	for _, node := range q.r.witness.nodes {
		for _, x := range q.r.witness.during(node, later.Return, q.v.End) {
			k, ok := x.Keys[q.v.Key]
			if !ok || !has(&x, q.v.Key, owner) || k.TTL < 0 || x.Time+k.TTL >= promised.Valid {
				continue
			}
			end := point{Event: -1, Node: node, Key: q.v.Key, Until: true, Time: x.Time + k.TTL, Sample: x.Time}
			c.text += fmt.Sprintf(", at %s on %s", s.instant(end), node)
			c.steps = []storyStep{q.step(int(promised.Ended)), q.step(int(later.Ended)), {Time: x.Time, Event: -1, weight: 9,
				Text: fmt.Sprintf("%s has the key with a lease that ends too early", node)}}
			return c
		}
	}
	return nil
}

// strangersRelease: a release between the two grants succeeded for an owner that did not hold the lock.
func (q *inquiry) strangersRelease() *cause {
	p, s, h := q.p, q.s, q.r.History
	for i := range h.Spans {
		rel := &h.Spans[i]
		if rel.Op != history.OpRelease || rel.Outcome != history.OK || rel.Key != p.a.Key || rel.Owner == p.a.Owner ||
			rel.Owner == p.b.Owner || rel.Call < p.a.From || rel.Call >= p.b.From {
			continue
		}
		mine := q.r.lastHold(rel.Owner, rel.Key, rel.Call)
		if mine != nil && (mine.End != checker.Released || mine.to > p.a.From) {
			continue
		}
		text := ""
		if client := rel.Process.Client(h.Clients); client == p.a.Client {
			text = fmt.Sprintf("%s, granted it at %s, released it at %s, without an error, for another owner (%s), which did "+
				"not hold it", clientName(client), s.instant(p.a.granted()), s.instant(eventAt(rel.Invoked, rel.Call)),
				quote(q.r.ownerName(rel.Owner)))
		} else {
			text = fmt.Sprintf("%s, granted it at %s, still held it when %s released it at %s, without an error, for an owner "+
				"that did not hold it (%s)", clientName(p.a.Client), s.instant(p.a.granted()), clientName(client),
				s.instant(eventAt(rel.Invoked, rel.Call)), quote(q.r.ownerName(rel.Owner)))
		}
		if gone := q.goneAfter(rel.Call); gone != nil {
			text += fmt.Sprintf("; the key was no longer there at %s", s.instant(sampleAt(gone)))
		}
		text += fmt.Sprintf("; %s was granted it at %s", clientName(p.b.Client), s.instant(p.b.granted()))
		return &cause{text: text, steps: []storyStep{q.step(int(rel.Ended))}}
	}
	return nil
}
