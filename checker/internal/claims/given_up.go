package claims

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
)

// AboutHold reports whether an operation is about the hold of its owner.
func AboutHold(op history.Op) bool {
	switch op {
	case history.OpWork, history.OpTouch, history.OpInspect, history.OpInspectOwner, history.OpGuard:
		return false
	}
	return true
}

// This file decides for each notice whether its owner can still have had something to release. A history may have as
// many notices as operations, so both are summed up once.

// abandonment is the event after which an owner can have nothing left of a key that it could release.
type abandonment struct {
	At   time.Duration // when the release or the operation of unknown outcome was complete
	Span int32         // the grant of the released hold, or the operation of unknown outcome
}

// ownerActs are the operations and holds of an owner at a key, as indices.
type ownerActs struct {
	Spans   []int32 // operations about holds, in the order of their calls
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
func (c *Check) noticedActs() map[ledger.OwnerKey]*ownerActs {
	spans := make(map[ledger.OwnerKey][]int32)
	for i := range c.H.Notices {
		spans[ledger.OwnerKey{Owner: c.H.Notices[i].Owner, Key: c.H.Notices[i].Key}] = nil
	}
	c.ListSpans(spans, func(s *history.Span) bool { return AboutHold(s.Op) })
	all := make(map[ledger.OwnerKey]*ownerActs, len(spans))
	for at, list := range spans { // in any order: each is alone
		all[at] = &ownerActs{Spans: list}
	}
	for i, u := range c.H.Unknown {
		s := &c.H.Spans[u.Span]
		if a := all[ledger.Of(s)]; a != nil && AboutHold(s.Op) {
			a.unknown = append(a.unknown, int32(i))
		}
	}
	for _, holds := range c.ByKey {
		for _, i := range holds {
			if a := all[ledger.OwnerKey{Owner: c.Holds[i].Owner, Key: c.Holds[i].Key}]; a != nil {
				a.holds = append(a.holds, i)
			}
		}
	}
	return all
}

// sum sums up the operations of an owner.
func (c *Check) sum(a *ownerActs) {
	ended := make(map[int32]time.Duration, len(a.unknown))
	for _, u := range refs.At(c.H.Unknown, a.unknown) {
		if !u.Timeout && !u.Abandoned {
			ended[u.Span] = u.Time
		}
	}
	var acts actsSum
	a.sums = append(make([]actsSum, 0, len(a.Spans)+1), acts)
	for _, i := range a.Spans {
		acts.add(i, &c.H.Spans[i], ended)
		a.sums = append(a.sums, acts)
	}
	ends := holdsSum{last: refs.None}
	a.ends = append(make([]holdsSum, 0, len(a.holds)+1), ends)
	for _, i := range a.holds {
		switch how := c.EndOf(&c.Holds[i]); {
		case how == property.Released && (ends.last == refs.None || c.Holds[i].FreeBy >= c.Holds[ends.last].FreeBy):
			ends.last = i
		case how != property.Released && how != property.ReleaseUnknown:
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
		case t >= a.ended.At:
			a.ended = abandonment{t, i}
		}
	case s.Outcome == history.OK || s.Undone:
		a.latest = max(a.latest, s.Return)
		a.undone = a.undone || s.Undone
		a.kept = a.kept || after && s.Op == history.OpRenew
		if (after || s.Undone) && s.Return >= a.back.At {
			a.back = abandonment{s.Return, i}
		}
	}
}

// GivenUp reports whether the owner in n certainly has nothing left of the key that it could still release, and since
// when: each hold was released, and not by force, each operation whose outcome is unknown has ended, none that takes
// effect is in flight, and none shows later that something was left. The loss of a hold that an operation of unknown
// outcome left, or of an undone grant, may be reported.
func (c *Check) GivenUp(n *history.Notice) (last abandonment, ok bool) {
	if len(c.Forced()[n.Key]) > 0 {
		return last, false
	}
	a := c.Acts()[ledger.OfNotice(n)]
	if a.sums == nil {
		c.sum(a)
	}
	next := sort.Search(len(a.Spans), func(i int) bool { return c.H.Spans[a.Spans[i]].Call > n.Time })
	acts := &a.sums[next]
	if acts.open > 0 || acts.kept || acts.latest > n.Time || n.F == history.Lost && (acts.unknown > 0 || acts.undone) ||
		next < len(a.Spans) && acts.afterUnknown(&c.H.Spans[a.Spans[next]]) {
		return last, false
	}
	if last = acts.back; acts.ended.At >= last.At {
		last = acts.ended
	}
	ends := a.ends[sort.Search(len(a.holds), func(i int) bool { return c.Holds[a.holds[i]].From > n.Time })]
	if ends.last != refs.None && c.Holds[ends.last].FreeBy >= last.At {
		last = abandonment{c.Holds[ends.last].FreeBy, c.Holds[ends.last].Span}
	}
	return last, !ends.more && last.At > 0
}
