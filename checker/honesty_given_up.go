package checker

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file decides for each notice whether its owner can still have had something to release. A history may have as
// many notices as operations, so both are summed up once.

// abandonment is the event after which an owner can have nothing left of a key that it could release.
type abandonment struct {
	at   time.Duration // when the release or the operation of unknown outcome was complete
	span int32         // the grant of the released hold, or the operation of unknown outcome
}

// ownerActs are the operations and holds of an owner at a key, as indices.
type ownerActs struct {
	spans   []int32 // operations about holds, in the order of their calls
	unknown []int32 // of h.Unknown
	holds   []int32 // in the order of their grants
	sums    []actsSum
	ends    []holdsSum
}

// actsSum summarizes the first operations of an owner: which of them may have left it a hold that is not known.
type actsSum struct {
	back         abandonment   // the last that returned a possible hold: an undone grant, or another release
	ended        abandonment   // the last of unknown outcome
	unknown      int           // operations of unknown outcome
	open         int           // operations whose end nobody knows
	undone, kept bool          // a grant was undone; it renewed after an operation of unknown outcome
	latest       time.Duration // the last return of an operation that had an effect
}

// holdsSum summarizes how the first holds of an owner ended.
type holdsSum struct {
	last int32 // the hold that was released last, or -1
	more bool  // one was not released
}

// noticedActs lists the operations of the owners of all notices at their keys.
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
func (v *view) listSpans(lists map[ownerKey][]int32, is func(s *history.Span) bool) {
	for i, s := range refs(v.h.Spans) {
		at := ownerKey{s.Owner, s.Key}
		if list, wanted := lists[at]; wanted && is(s) {
			lists[at] = append(list, i)
		}
	}
}

// sum sums up the operations of an owner.
func (c *honestyCheck) sum(a *ownerActs) {
	ended := make(map[int32]time.Duration, len(a.unknown))
	for _, u := range refsAt(c.h.Unknown, a.unknown) {
		if !u.Timeout && !u.Abandoned {
			ended[u.Span] = u.Time
		}
	}
	var acts actsSum
	a.sums = append(make([]actsSum, 0, len(a.spans)+1), acts)
	for _, i := range a.spans {
		acts.add(i, &c.h.Spans[i], ended)
		a.sums = append(a.sums, acts)
	}
	ends := holdsSum{last: none}
	a.ends = append(make([]holdsSum, 0, len(a.holds)+1), ends)
	for _, i := range a.holds {
		switch how := c.endOf(&c.holds[i]); {
		case how == Released && (ends.last == none || c.holds[i].freeBy >= c.holds[ends.last].freeBy):
			ends.last = i
		case how != Released && how != ReleaseUnknown:
			ends.more = true
		}
		a.ends = append(a.ends, ends)
	}
}

// afterUnknown reports whether s, with this sum before it, may show that an operation of unknown outcome left something
// to release.
func (a *actsSum) afterUnknown(s *history.Span) bool {
	return a.unknown > 0 && s.Outcome != history.Fail && (s.Op == history.OpRelease || s.Op == history.OpRenew)
}

// add adds operation i; ended has the completions of operations of unknown outcome.
func (a *actsSum) add(i int32, s *history.Span, ended map[int32]time.Duration) {
	after := a.afterUnknown(s)
	switch {
	case s.Outcome == history.Info:
		a.unknown++
		switch t, known := ended[i]; {
		case !known:
			a.open++
		case t >= a.ended.at:
			a.ended = abandonment{t, i}
		}
	case s.Outcome == history.OK || s.Undone:
		a.latest = max(a.latest, s.Return)
		a.undone = a.undone || s.Undone
		a.kept = a.kept || after && s.Op == history.OpRenew
		if (after || s.Undone) && s.Return >= a.back.at {
			a.back = abandonment{s.Return, i}
		}
	}
}

// givenUp reports whether the owner in n certainly has nothing left of the key that it could still release, and since
// when: each hold was released, and not by force, each operation whose outcome is unknown has ended, none that takes
// effect is in flight, and none shows later that something was left. The loss of a hold that an operation of unknown
// outcome left, or of an undone grant, may be reported.
func (c *honestyCheck) givenUp(n *history.Notice) (last abandonment, ok bool) {
	if len(c.forced()[n.Key]) > 0 {
		return last, false
	}
	a := c.acts()[ownerKey{n.Owner, n.Key}]
	if a.sums == nil {
		c.sum(a)
	}
	next := sort.Search(len(a.spans), func(i int) bool { return c.h.Spans[a.spans[i]].Call > n.Time })
	acts := &a.sums[next]
	if acts.open > 0 || acts.kept || acts.latest > n.Time || n.F == history.Lost && (acts.unknown > 0 || acts.undone) ||
		next < len(a.spans) && acts.afterUnknown(&c.h.Spans[a.spans[next]]) {
		return last, false
	}
	if last = acts.back; acts.ended.at >= last.at {
		last = acts.ended
	}
	ends := a.ends[sort.Search(len(a.holds), func(i int) bool { return c.holds[a.holds[i]].from > n.Time })]
	if ends.last != none && c.holds[ends.last].freeBy >= last.at {
		last = abandonment{c.holds[ends.last].freeBy, c.holds[ends.last].span}
	}
	return last, !ends.more && last.at > 0
}
