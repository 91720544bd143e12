package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Causes of violations that are not about two holders: a lock that is never free
// again, a waiter that sleeps. And the causes of last resort.

func noLeaseMechanism() mechanism {
	return mechanism{name: "no-lease", find: findNoLease, advice: []adviceItem{{
		Text: "Set the lease in the command that sets the key (`SET key value NX PX lease`), so that the server ends the " +
			"hold of a client that died or is cut off.",
		Cost: "work that takes longer than the lease has to renew it",
	}}}
}

func countedTwiceMechanism() mechanism {
	return mechanism{name: "counted-twice", find: findCountedTwice, advice: []adviceItem{{
		Text: "Send an id with each request and store it with the hold, so that a request that is sent again counts once; " +
			"or do not send commands again when no reply came (`MaxRetries -1`).",
		Cost: "a field of the key for each hold; without retries, an acquire of unknown outcome",
	}}}
}

func lostMessageMechanism() mechanism {
	return mechanism{name: "message-lost", find: findLostMessage, advice: []adviceItem{{
		Text: "Pub/sub delivers at most once: a waiter has to ask for the lock from time to time, with or without a message.",
		Cost: "a request per waiter and interval",
	}}}
}

func betweenMechanism() mechanism {
	return mechanism{name: "fault-between", find: findBetween}
}

func unknownMechanism() mechanism {
	return mechanism{name: "unknown", find: findUnknown}
}

// findNoLease: a client was killed, or its acquire had no reply, and its key stays without an expiry.
func findNoLease(q *inquiry) *cause {
	if q.p != nil || q.v.Key == "" || q.r.byMajority() { // what has no expiry there ends with a session
		return nil
	}
	for i := range q.r.faults {
		f := &q.r.faults[i]
		c, client := cluster.ClientNumber(f.target)
		if !client || !f.is("client-crash", "client-restart") || len(f.effects) == 0 || f.effectTime() > q.v.End {
			continue
		}
		kept := q.keptWithoutExpiry(f.effectTime())
		asked, last := q.lastAcquire(c)
		if kept == nil || asked == nil || asked.Outcome == history.OK && last == nil {
			continue
		}
		return q.noLease(f, asked, last, kept)
	}
	return q.unansweredNoLease()
}

// keptWithoutExpiry is the last sample before the end of the violation in which a master has the key without an
// expiry, if it had it in every sample as master since t; else nil. There may be two masters: a node that was
// restarted is one until it is made a replica.
func (q *inquiry) keptWithoutExpiry(t time.Duration) *history.Sample {
	if q.property == checker.Leak {
		return q.keptWithin(interval{t, q.v.End}) // then the harness probes the lock, and releases it
	}
	return q.keptWithin(interval{t, max(q.v.End, q.r.History.End)})
}

// keptWithin is keptWithoutExpiry for the samples of one interval.
func (q *inquiry) keptWithin(w interval) *history.Sample {
	var kept *history.Sample
	for _, node := range q.r.witness.nodes {
		samples := q.r.witness.during(node, w.from, w.until)
		without := slices.ContainsFunc(samples, func(x history.Sample) bool {
			k, held := x.Keys[q.v.Key]
			return isMaster(x) && (!held || k.TTL >= 0)
		})
		n := len(samples)
		for n > 0 && !isMaster(samples[n-1]) {
			n--
		}
		if !without && n > 0 && (kept == nil || samples[n-1].Time > kept.Time) {
			kept = &samples[n-1]
		}
	}
	return kept
}

// lastAcquire is the last acquire of the key by a client, and the hold that it
// began; nil if it has no reply.
func (q *inquiry) lastAcquire(client int) (asked *history.Span, began *hold) {
	h := q.r.History
	for i := range h.Spans {
		s := &h.Spans[i]
		if (s.Op == history.OpAcquire || s.Op == history.OpTry) && s.Process.Client(h.Clients) == client &&
			q.r.keyName(s.Key) == q.v.Key && s.Outcome != history.Fail {
			asked, began = s, nil
			if s.Outcome == history.OK {
				began = q.r.lastHold(s.Owner, s.Key, s.Return)
			}
		}
	}
	return asked, began
}

func (q *inquiry) noLease(f *injection, asked *history.Span, last *hold, kept *history.Sample) *cause {
	s := q.s
	c := &cause{faults: []*injection{f}}
	who := targetName(f.target)
	died := fmt.Sprintf("was killed at %s (%s)", s.instant(f.took()), quote(f.name))
	stays := fmt.Sprintf("%s still had it at %s", kept.Node, s.instant(sampleAt(kept)))
	if last != nil {
		c.text = fmt.Sprintf("%s, granted %s at %s, %s, and the key has no expiry: %s", who, quote(q.v.Key),
			s.instant(last.granted()), died, stays)
	} else {
		held := ""
		if late := q.otherFault(f, asked.Call); late != nil {
			c.faults = append(c.faults, late)
			held = fmt.Sprintf(", while replies to it were held back (%s from %s)", quote(late.name), s.instant(late.took()))
		}
		c.text = fmt.Sprintf("%s asked for %s at %s and %s%s, and the key has no expiry: %s", who, quote(q.v.Key),
			s.instant(eventAt(asked.Invoked, asked.Call)), died, held, stays)
	}
	c.text += q.consequence()
	if last != nil {
		c.steps = append(c.steps, q.step(int(last.Granted)))
	}
	c.steps = append(c.steps, storyStep{Time: kept.Time, Event: -1, weight: 8,
		Text: fmt.Sprintf("%s still has the key of %s, with no expiry", kept.Node, who)})
	return c
}

// step is an event as a step.
func (q *inquiry) step(event int) storyStep {
	t, text, _ := q.r.describe(event)
	return storyStep{Time: t, Event: event, weight: 9, Text: text}
}

// otherFault is a fault on the target of f that was in force between from and f; nil if there is none.
func (q *inquiry) otherFault(f *injection, from time.Duration) *injection {
	for i := range q.r.faults {
		g := &q.r.faults[i]
		reply := strings.HasSuffix(g.name, "reply-late") || strings.HasSuffix(g.name, "reply-lost")
		if reply && g != f && g.target == f.target && g.effective(from, f.effectTime()) {
			return g
		}
	}
	return nil
}

// consequence is what the violation is, in the words of a headline.
func (q *inquiry) consequence() string {
	for i := range q.r.History.Probes {
		if p := &q.r.History.Probes[i]; q.property == checker.Recovery && p.Time == q.v.End && p.Outcome == history.Fail {
			return fmt.Sprintf("; after the run, at %s, an acquire was refused", q.s.instant(eventAt(p.Index, p.Time)))
		}
	}
	if who, span := q.waited(nil); q.property == checker.Recovery && span != nil && span.Outcome == history.Fail {
		return "; " + who + ", was not granted it"
	}
	return ""
}

// waited is the wait that was not served: "client 0, which asked for `orders` at 0.606 s and waited until 2.500 s";
// nil if the violation does not end with one, or with the acquire except.
func (q *inquiry) waited(except *history.Span) (text string, span *history.Span) {
	for i := range q.r.History.Spans {
		s := &q.r.History.Spans[i]
		if s.Op != history.OpAcquire || s == except || len(q.v.Events) == 0 ||
			int(s.Ended) != q.v.Events[len(q.v.Events)-1] || except != nil && s.Outcome == history.OK {
			continue
		}
		return fmt.Sprintf("%s, which asked for %s at %s and waited until %s",
			clientName(s.Process.Client(q.r.History.Clients)), quote(q.v.Key),
			q.s.instant(eventAt(s.Invoked, s.Call)), q.s.instant(eventAt(s.Ended, s.Return))), s
	}
	return "", nil
}

// messageFaults keep messages about a release from waiters.
func messageFaults() []string {
	return []string{"message-lost", "pubsub-cut", "subscribe-refused", "channel-refused"}
}

// findLostMessage: a message was kept from the waiter, and the lock was free.
func findLostMessage(q *inquiry) *cause {
	if q.p != nil || q.property != checker.WakeUp {
		return nil
	}
	who, span := q.waited(nil)
	if span == nil {
		return nil
	}
	waiter := cluster.ClientName(span.Process.Client(q.r.History.Clients))
	for i := range q.r.faults {
		f := &q.r.faults[i]
		if !f.is(messageFaults()...) || isClient(f.target) && f.target != waiter || len(f.effects) == 0 ||
			f.effectTime() > span.Return || f.heal < span.Call {
			continue
		}
		free := q.releasedBefore(q.v.Start)
		return &cause{faults: []*injection{f}, text: fmt.Sprintf("nobody woke %s: %s at %s (%s: %s)%s", who,
			lostMessage(f), q.s.instant(f.took()), quote(f.name), q.s.quote(f.effects[0].Detail, f.took()), free)}
	}
	return nil
}

// lostMessage is what happened to the messages for a waiter.
func lostMessage(f *injection) string {
	switch f.name {
	case "pubsub-cut":
		return "its subscription was cut"
	case "subscribe-refused", "channel-refused":
		return "its subscription was refused"
	}
	return "a message was lost"
}

// releasedBefore is the release after which the lock was free at t: "; client 1 had released it at 0.604 s".
func (q *inquiry) releasedBefore(t time.Duration) string {
	var last *history.Span
	h := q.r.History
	for i := range h.Spans {
		s := &h.Spans[i]
		if s.Op == history.OpRelease && s.Outcome == history.OK && q.r.keyName(s.Key) == q.v.Key && s.Return <= t {
			last = s
		}
	}
	if last == nil {
		return ""
	}
	return fmt.Sprintf("; %s had released it at %s", clientName(last.Process.Client(h.Clients)),
		q.s.instant(eventAt(last.Invoked, last.Call)))
}

// findCountedTwice: the reply to an acquire was lost, and a server counted a
// second hold that the client does not know of.
func findCountedTwice(q *inquiry) *cause {
	if q.p != nil {
		return nil
	}
	for c, f := range q.lostReplies(true) {
		asked, h := q.acquireAt(c, f.effectTime())
		if h == nil {
			continue
		}
		if twice := q.countAbove(h); twice != nil {
			return q.countedTwice(f, asked, h, twice, fmt.Sprintf("was sent again because its reply was lost at %s (%s)",
				q.s.instant(f.took()), quote(f.name)))
		}
	}
	return nil
}

// acquireAt is the acquire of a client that was in flight at t, and the hold that it began.
func (q *inquiry) acquireAt(client int, t time.Duration) (*history.Span, *hold) {
	h := q.r.History
	for i := range h.Spans {
		s := &h.Spans[i]
		if (s.Op == history.OpAcquire || s.Op == history.OpTry) && s.Process.Client(h.Clients) == client &&
			s.Outcome == history.OK && s.Call <= t && s.Return >= t && q.r.keyName(s.Key) == q.v.Key {
			return s, q.r.lastHold(s.Owner, s.Key, s.Return)
		}
	}
	return nil, nil
}

// countAbove is the first sample with a higher hold count than the client knows of; nil if there is none.
func (q *inquiry) countAbove(h *hold) *history.Sample {
	owner := q.r.ownerName(h.Owner)
	for _, node := range q.r.witness.nodes {
		samples := q.r.witness.during(node, h.Asked, h.to)
		for i := range samples {
			if has(&samples[i], q.v.Key, owner) && samples[i].Keys[q.v.Key].Count > 1 {
				return &samples[i]
			}
		}
	}
	return nil
}

func (q *inquiry) countedTwice(
	f *injection, asked *history.Span, h *hold, twice *history.Sample, how string,
) *cause {
	s := q.s
	text := fmt.Sprintf("counted twice: the acquire of %s, sent at %s, %s, and %s counted %s holds at %s",
		clientName(h.Client), s.instant(eventAt(asked.Invoked, asked.Call)), how, twice.Node,
		s.add(proofCount, fmt.Sprint(twice.Keys[q.v.Key].Count), sampleAt(twice)), s.instant(sampleAt(twice)))
	if kept := q.keptAfter(h, twice.Node); kept != nil {
		text += fmt.Sprintf("; %s released it once, at %s, and %s still had it at %s", clientName(h.Client),
			s.instant(h.ended()), twice.Node, s.instant(sampleAt(kept)))
	}
	if who, span := q.waited(asked); span != nil {
		text += "; " + who + ", was not granted it"
	}
	return &cause{faults: []*injection{f}, text: text, steps: []storyStep{q.step(int(asked.Invoked)), {
		Time: twice.Time, Event: -1, weight: 9, Text: fmt.Sprintf("%s counts %d holds of %s", twice.Node,
			twice.Keys[q.v.Key].Count, clientName(h.Client))}}}
}

// keptAfter is the last sample of node with a hold after its owner released it; nil if there is none.
func (q *inquiry) keptAfter(h *hold, node string) *history.Sample {
	if h.End != checker.Released {
		return nil
	}
	var kept *history.Sample
	samples := q.r.witness.during(node, h.to, q.r.History.End)
	for i := range samples {
		if samples[i].Sent > h.to && has(&samples[i], q.v.Key, q.r.ownerName(h.Owner)) {
			kept = &samples[i]
		}
	}
	return kept
}

// findBetween names the last fault that took effect between the two grants, or
// between the events of the violation.
func findBetween(q *inquiry) *cause {
	from, to := q.v.Start, q.v.End
	if q.p != nil {
		from, to = q.p.a.Asked, q.p.b.From
	}
	var f *injection
	for i := range q.r.faults {
		if g := &q.r.faults[i]; len(g.effects) > 0 && g.inject <= to && max(g.effectTime(), g.heal) >= from &&
			(f == nil || g.effectTime() >= f.effectTime()) {
			f = g
		}
	}
	if f == nil {
		return nil
	}
	c := &cause{faults: []*injection{f}}
	what := fmt.Sprintf("%s took effect on %s at %s", quote(f.name), subject(f.target), q.s.instant(f.took()))
	c.text = q.plain() + "; " + what
	return c
}

// findUnknown says that no fault is part of the cause.
func findUnknown(q *inquiry) *cause {
	text := q.plain()
	if q.p != nil && !(q.r.alone() && len(q.r.faults) == 0) { // whether there were faults is known
		text += "; no fault took effect between the two grants"
	}
	return &cause{text: text}
}

// plain is the violation without a cause.
func (q *inquiry) plain() string {
	p, s := q.p, q.s
	if p == nil {
		return s.prove(q.v.Text, q.operations())
	}
	return fmt.Sprintf("%s was granted it at %s%s, %s at %s%s%s", clientName(p.a.Client), s.instant(p.a.granted()),
		p.by(s, p.a), clientName(p.b.Client), s.instant(p.b.granted()), p.by(s, p.b), q.early())
}

// operations are the request and the reply, if there is one, of each operation that the violation names as evidence.
func (q *inquiry) operations() (ops [][]point) {
	for i := range q.r.History.Spans {
		s := &q.r.History.Spans[i]
		if !slices.Contains(q.v.Events, int(s.Invoked)) && !slices.Contains(q.v.Events, int(s.Ended)) {
			continue
		}
		op := []point{eventAt(s.Invoked, s.Call)}
		if s.Return != history.Infinity {
			op = append(op, eventAt(s.Ended, s.Return))
		}
		ops = append(ops, op)
	}
	return ops
}

// alsoBetween names a fault that took effect between the two grants, if any.
func (q *inquiry) alsoBetween(c *cause) string {
	f := findBetween(&inquiry{r: q.r, v: q.v, p: q.p, s: &proofs{}})
	if f == nil {
		return ""
	}
	c.faults = f.faults
	return fmt.Sprintf("; %s took effect on %s at %s", quote(c.faults[0].name), subject(c.faults[0].target),
		q.s.instant(c.faults[0].took()))
}
