package claims

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// promiseIndex finds the promises that an owner received for a key. It is made on first use, because many histories do
// not need it: see Check.promises.
type promiseIndex struct {
	*bounds.View
	effects []int32         // of EffectOrder, by owner, key and event
	first   []int32         // by owner: where its effects begin; one more at the end
	latest  []time.Duration // the latest time of an effect and those before it, of the same owner and key
	soonest []time.Duration // the soonest time of an effect and those after it
	found   []ReceivedPromise
}

func NewPromiseIndex(v *bounds.View) *promiseIndex {
	x := &promiseIndex{View: v}
	all := ledger.EffectOrder(v.H)
	n := 0
	for _, e := range all {
		if e == ledger.NoEffect {
			continue
		}
		if _, is := PromiseOf(v, e); is {
			all[n] = e
			n++
		}
	}
	all = all[:n]
	order, _ := refs.CountingSort(len(v.H.Keys), n, func(i int32) int32 { return OwnerOf(v, all[i]).Key })
	x.effects = make([]int32, n)
	var byOwner []int32
	byOwner, x.first = refs.CountingSort(len(v.H.Owners), n, func(i int32) int32 {
		return OwnerOf(v,
			all[order[i]]).Owner
	})
	for i, o := range byOwner {
		x.effects[i] = all[order[o]]
	}
	x.bound()
	return x
}

// bound fills latest and soonest. A notice may have been sent before events that the history has before it, so that
// effects are not in the order of time.
func (x *promiseIndex) bound() {
	n := len(x.effects)
	x.latest, x.soonest = make([]time.Duration, n), make([]time.Duration, n)
	for i, e := range x.effects {
		p, _ := PromiseOf(x.View, e)
		x.latest[i], x.soonest[i] = p.At, p.At
		if i > 0 && OwnerOf(x.View, x.effects[i-1]) == OwnerOf(x.View, e) {
			x.latest[i] = max(p.At, x.latest[i-1])
		}
	}
	for i := n - 2; i >= 0; i-- {
		if OwnerOf(x.View, x.effects[i]) == OwnerOf(x.View, x.effects[i+1]) {
			x.soonest[i] = min(x.soonest[i], x.soonest[i+1])
		}
	}
}

// OwnerOf is whose an effect is.
func OwnerOf(v *bounds.View, effect int32) ledger.OwnerKey {
	if effect < 0 {
		n := &v.H.Notices[-effect-1]
		return ledger.OfNotice(n)
	}
	s := &v.H.Spans[effect]
	return ledger.Of(s)
}

// PromiseOf is the promise that an effect made or ended, and whether it did. A promise without an end is left out: it
// was not made, but follows from a request without a lease.
func PromiseOf(v *bounds.View, effect int32) (p ReceivedPromise, is bool) {
	if effect < 0 {
		n := &v.H.Notices[-effect-1]
		p = ReceivedPromise{
			At: n.Time, Until: n.Valid, Asked: n.Time, Span: refs.None, Event: n.Index, Kind: PromiseReplaced, notice: true,
		}
		return p, n.F == history.Renewed && n.Valid != 0 && p.Until < segment.Never
	}
	s := &v.H.Spans[effect]
	p = ReceivedPromise{
		At: s.Return, Until: v.PromisedBy(effect), Asked: s.Call, Span: effect, Event: s.Ended, Reader: !s.Write,
	}
	switch {
	case s.Op == history.OpRelease:
		p.At, p.Until, p.Event, p.Kind = s.Call, 0, s.Invoked, PromiseOver
		return p, s.Outcome != history.Fail
	case s.Outcome != history.OK:
		return p, false
	case s.Op == history.OpRenew:
		p.Kind = PromiseReplaced
		return p, (s.Valid != 0 || s.Lease > 0) && p.Until < segment.Never
	}
	return p, excuse.IsAcquire(s.Op) && p.Until < segment.Never
}

// between is where the effects of an owner at a key are.
func (x *promiseIndex) between(owner, key int32) (from, until int) {
	at := func(i int) int32 { return OwnerOf(x.View, x.effects[i]).Key }
	from, until = int(x.first[owner]), int(x.first[owner+1])
	from += sort.Search(until-from, func(i int) bool { return at(from+i) >= key })
	until = from + sort.Search(until-from, func(i int) bool { return at(from+i) > key })
	return from, until
}

// All are the promises to an owner for a key, in the order of their events, until the next call of a method.
func (x *promiseIndex) All(owner, key int32) []ReceivedPromise {
	x.found = x.found[:0]
	from, until := x.between(owner, key)
	for _, e := range x.effects[from:until] {
		p, _ := PromiseOf(x.View, e)
		x.found = append(x.found, p)
	}
	return x.found
}

// Of returns the promises of its owner that are about h, until the next call of a method. A release without a mode may
// be of either.
func (x *promiseIndex) Of(h *ledger.Hold) []ReceivedPromise {
	x.found = x.found[:0]
	from, until := x.between(h.Owner, h.Key)
	from += sort.Search(until-from, func(i int) bool { return x.latest[from+i] >= h.From })
	for ; from < until && x.soonest[from] < h.Until; from++ {
		p, _ := PromiseOf(x.View, x.effects[from])
		if p.At >= h.From && p.At < h.Until && (p.Reader == h.Reader || !p.Reader && p.Kind == PromiseOver) {
			x.found = append(x.found, p)
		}
	}
	return x.found
}

// ReceivedPromise is one promise that a client received: by a grant, a renewal or a notice; or the end of one, by a
// release.
type ReceivedPromise struct {
	At, Until time.Duration
	Asked     time.Duration // its request was not sent before; of a notice, unknown: at
	Span      int32         // the operation; none: a notice
	Event     int32
	Kind      promiseEvent
	Reader    bool // of a hold for reading; a notice does not say
	notice    bool // made by a notice
}

// promiseEvent is the effect of an event on the promises of an owner.
type promiseEvent uint8

const (
	PromiseMade     promiseEvent = iota // by a grant: a longer one, of an outer level, stays in force
	PromiseReplaced                     // by a renewal: the innermost level's
	PromiseOver                         // by a release: the innermost level's
)

// LevelPromises are the promises to the levels of one hold, the outermost first.
type LevelPromises []ReceivedPromise

// Apply applies an event. A release leaves the promises of the outer levels.
func (l *LevelPromises) Apply(p ReceivedPromise) {
	list := *l
	if p.Kind != PromiseMade && len(list) > 0 {
		list = list[:len(list)-1]
	}
	if p.Kind != PromiseOver {
		list = append(list, p)
	}
	*l = list
}

// Longest is the promise that ends last.
func (l LevelPromises) Longest() (longest ReceivedPromise) {
	for _, p := range l {
		if p.Until > longest.Until {
			longest = p
		}
	}
	return longest
}

// LevelsLeft are the promises to the levels that a hold had when it ended. Which of several levels a notice renews is
// not known.
func (c *Check) LevelsLeft(h *ledger.Hold) LevelPromises {
	return c.levelsWithout(h, func(p ReceivedPromise) bool { return p.Kind == PromiseOver })
}

// LongestLeft is the end of the longest promise to a level that a hold may have had when it ended: a release of
// unknown outcome may have had no effect. 0: none is known.
func (c *Check) LongestLeft(h *ledger.Hold) time.Duration {
	return c.levelsWithout(h, func(p ReceivedPromise) bool {
		return p.Kind == PromiseOver && c.H.Spans[p.Span].Outcome == history.OK
	}).Longest().Until
}

// levelsWithout are the promises to the levels of a hold without the ones that a release ended.
func (c *Check) levelsWithout(h *ledger.Hold, released func(ReceivedPromise) bool) (levels LevelPromises) {
	for _, p := range c.Promises().Of(h) {
		if p.notice && len(levels) > 1 || p.Kind == PromiseOver && !released(p) {
			continue
		}
		levels.Apply(p)
	}
	return levels
}
