package checker

import (
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeAfterRelease judges notices about holds that were released: a watchdog that is not stopped keeps the lock from
// others, or reports the loss of what its user gave back. The reply to a last renewal may come after that to the
// release, as late as the network is slow or the client was paused. A release or an acquire that ended with an unknown
// outcome ends the renewals too: its caller has nothing left to release, unless it tries again. So does an acquire
// whose grant was undone.
func (c *honestyCheck) judgeAfterRelease() {
	var dis *disturbances
	for i := range c.h.Notices {
		n := &c.h.Notices[i]
		if n.F != history.Lost && n.F != history.Renewed || c.h.Limit(n.Key) != 0 || c.ownerOrder[n.Owner] == concurrent {
			continue
		}
		if x, held := c.lastHold(n.Owner, n.Key, n.Time); held && c.holds[x].until >= n.Time {
			continue
		}
		last, over := c.givenUp(n)
		if !over || n.Time <= later(last.at, c.o.slack()) {
			continue
		}
		if dis == nil {
			d := c.disturbances(c.o)
			dis = &d
		}
		since := segment{c.h.Spans[last.span].Call, n.Time}
		if last.hold >= 0 {
			since.from = c.holds[last.hold].asked
		}
		if last.unknown || last.hold < 0 { // a fault is why
			since.from = n.Time - 2*c.o.slack()
		}
		if c.o.applies(honestPaused) && dis.touch(since, c.client(last.span), history.AffectsClients,
			history.AffectsTraffic) {
			continue
		}
		c.found.add(finding{rule: noticedAfter, x: last.span, y: int32(i), start: last.at, end: n.Time})
	}
}

// abandonment is how an owner gave up the last that it had, or may have had, of a key.
type abandonment struct {
	at         time.Duration // the completion
	span, hold int32         // the grant of the hold, or the operation; the hold, or -1
	unknown    bool          // the outcome of an operation is unknown
}

// ownerActs is what an owner did at a key, as indices.
type ownerActs struct {
	spans   []int32 // operations about holds
	unknown []int32 // of h.Unknown
	holds   []int32
}

// actsOf is what the owner in a notice did at its key.
func (c *honestyCheck) actsOf(n *history.Notice) *ownerActs {
	if c.acts == nil {
		c.acts = c.noticedActs()
	}
	return c.acts[ownerKey{n.Owner, n.Key}]
}

// noticedActs lists what the owners of all notices did at their keys.
func (c *honestyCheck) noticedActs() map[ownerKey]*ownerActs {
	spans := make(map[ownerKey][]int32)
	for i := range c.h.Notices {
		spans[ownerKey{c.h.Notices[i].Owner, c.h.Notices[i].Key}] = nil
	}
	c.listSpans(spans, func(s *history.Span) bool { return aboutHold(s.Op) })
	all := make(map[ownerKey]*ownerActs, len(spans))
	for at, list := range spans { // in any order: each is alone
		all[at] = &ownerActs{spans: list}
	}
	for i, u := range c.h.Unknown {
		s := &c.h.Spans[u.Span]
		if a := all[ownerKey{s.Owner, s.Key}]; a != nil && aboutHold(s.Op) {
			a.unknown = append(a.unknown, int32(i))
		}
	}
	for _, holds := range c.byKey {
		for _, i := range holds {
			if a := all[ownerKey{c.holds[i].owner, c.holds[i].key}]; a != nil {
				a.holds = append(a.holds, i)
			}
		}
	}
	return all
}

// listSpans appends to each of lists the operations of its owner and key that satisfy is, in the order of their calls.
func (c *honestyCheck) listSpans(lists map[ownerKey][]int32, is func(s *history.Span) bool) {
	for i := range c.h.Spans {
		s := &c.h.Spans[i]
		at := ownerKey{s.Owner, s.Key}
		if list, wanted := lists[at]; wanted && is(s) {
			lists[at] = append(list, int32(i))
		}
	}
}

// givenUp reports whether the owner in n certainly has nothing left of the key that it could still release, and since
// when: each hold was released, and not by force, and each operation whose outcome is unknown has ended. The loss of
// what an operation of unknown outcome left may be reported.
func (c *honestyCheck) givenUp(n *history.Notice) (last abandonment, ok bool) {
	if len(c.forced()[n.Key]) > 0 {
		return last, false
	}
	acts := c.actsOf(n)
	last, unknown, ok := c.gaveBack(n, acts.spans)
	if !ok {
		return last, false
	}
	for _, i := range acts.unknown {
		u := &c.h.Unknown[i]
		if c.h.Spans[u.Span].Call <= n.Time && !u.Timeout {
			unknown--
			if u.Time >= last.at {
				last = abandonment{u.Time, u.Span, -1, true}
			}
		}
	}
	if unknown > 0 {
		return last, false
	}
	for _, i := range acts.holds {
		h := &c.holds[i]
		if h.from > n.Time {
			continue
		}
		switch how := c.endOf(h); {
		case how == Released && h.freeBy >= last.at:
			last = abandonment{h.freeBy, h.span, i, last.unknown}
		case how != Released && how != ReleaseUnknown:
			return last, false
		}
	}
	return last, last.at > 0
}

// gaveBack is the last of an owner's operations before n that gave back what it may have had without a known hold: an
// acquire whose grant was undone, or a release after an operation of unknown outcome. unknown is how many have such an
// outcome. It is not ok if the owner may still have something: an operation is in flight, or one that succeeds later
// than an unknown one shows it.
func (c *honestyCheck) gaveBack(n *history.Notice, spans []int32) (last abandonment, unknown int, ok bool) {
	for _, i := range spans {
		s := &c.h.Spans[i]
		after := unknown > 0 && (s.Op == history.OpRelease || s.Op == history.OpRenew)
		switch {
		case s.Call > n.Time: // in the order of their calls
			return last, unknown, !after || s.Outcome == history.Fail
		case s.Outcome == history.Info:
			if unknown++; n.F == history.Lost {
				return last, unknown, false
			}
		case s.Outcome == history.Fail && !s.Undone:
		case s.Return > n.Time, s.Undone && n.F == history.Lost, after && s.Op == history.OpRenew:
			return last, unknown, false
		case s.Return >= last.at && (s.Undone || after):
			last = abandonment{s.Return, i, -1, unknown > 0}
		}
	}
	return last, unknown, true
}

func (v *view) noticedViolation(f finding) Violation {
	s, n := &v.h.Spans[f.x], &v.h.Notices[f.y]
	w := v.involving("", f.x)
	w.Rule, w.Events = "a hold that was released is neither renewed nor lost", []int{int(s.Ended), int(n.Index)}
	what := "renewed"
	if n.F == history.Lost {
		what = "reported the loss of"
	}
	why := "it had released it by " + format.Instant(f.start)
	switch s.Outcome {
	case history.Info:
		why = fmt.Sprintf("its %s had ended at %s with an unknown outcome", s.Op, format.Instant(f.start))
	case history.Fail:
		why = fmt.Sprintf("its %s had failed at %s, and the grant was undone", s.Op, format.Instant(f.start))
	}
	w.Text = fmt.Sprintf("client %d %s %s at %s, although %s", w.Clients[0], what, lockName(w.Key),
		format.Instant(n.Time), why)
	return w
}
