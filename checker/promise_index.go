package checker

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// promiseIndex finds the promises that an owner received for a key. It is made on first use, because many histories do
// not need it: see honestyCheck.promises.
type promiseIndex struct {
	*view
	effects []int32         // of effectOrder, by owner, key and event
	first   []int32         // by owner: where its effects begin; one more at the end
	latest  []time.Duration // the latest time of an effect and those before it, of the same owner and key
	soonest []time.Duration // the soonest time of an effect and those after it
	found   []receivedPromise
}

func newPromiseIndex(v *view) *promiseIndex {
	x := &promiseIndex{view: v}
	all := effectOrder(v.h)
	n := 0
	for _, e := range all {
		if e == noEffect {
			continue
		}
		if _, is := v.promiseOf(e); is {
			all[n] = e
			n++
		}
	}
	all = all[:n]
	order, _ := countingSort(len(v.h.Keys), n, func(i int32) int32 { return v.ownerOf(all[i]).key })
	x.effects = make([]int32, n)
	var byOwner []int32
	byOwner, x.first = countingSort(len(v.h.Owners), n, func(i int32) int32 { return v.ownerOf(all[order[i]]).owner })
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
		p, _ := x.promiseOf(e)
		x.latest[i], x.soonest[i] = p.at, p.at
		if i > 0 && x.ownerOf(x.effects[i-1]) == x.ownerOf(e) {
			x.latest[i] = max(p.at, x.latest[i-1])
		}
	}
	for i := n - 2; i >= 0; i-- {
		if x.ownerOf(x.effects[i]) == x.ownerOf(x.effects[i+1]) {
			x.soonest[i] = min(x.soonest[i], x.soonest[i+1])
		}
	}
}

// ownerOf is whose an effect is.
func (v *view) ownerOf(effect int32) ownerKey {
	if effect < 0 {
		n := &v.h.Notices[-effect-1]
		return ownerKey{n.Owner, n.Key}
	}
	s := &v.h.Spans[effect]
	return ownerKey{s.Owner, s.Key}
}

// promiseOf is the promise that an effect made or ended, and whether it did. A promise without an end is left out: it
// was not made, but follows from a request without a lease.
func (v *view) promiseOf(effect int32) (p receivedPromise, is bool) {
	if effect < 0 {
		n := &v.h.Notices[-effect-1]
		p = receivedPromise{
			at: n.Time, until: n.Valid, asked: n.Time, span: none, event: n.Index, kind: promiseReplaced, notice: true,
		}
		return p, n.F == history.Renewed && n.Valid != 0 && p.until < never
	}
	s := &v.h.Spans[effect]
	p = receivedPromise{
		at: s.Return, until: v.promisedBy(effect), asked: s.Call, span: effect, event: s.Ended, reader: !s.Write,
	}
	switch {
	case s.Op == history.OpRelease:
		p.at, p.until, p.event, p.kind = s.Call, 0, s.Invoked, promiseOver
		return p, s.Outcome != history.Fail
	case s.Outcome != history.OK:
		return p, false
	case s.Op == history.OpRenew:
		p.kind = promiseReplaced
		return p, (s.Valid != 0 || s.Lease > 0) && p.until < never
	}
	return p, isAcquire(s.Op) && p.until < never
}

// between is where the effects of an owner at a key are.
func (x *promiseIndex) between(owner, key int32) (from, until int) {
	at := func(i int) int32 { return x.ownerOf(x.effects[i]).key }
	from, until = int(x.first[owner]), int(x.first[owner+1])
	from += sort.Search(until-from, func(i int) bool { return at(from+i) >= key })
	until = from + sort.Search(until-from, func(i int) bool { return at(from+i) > key })
	return from, until
}

// all are the promises to an owner for a key, in the order of their events, until the next call of a method.
func (x *promiseIndex) all(owner, key int32) []receivedPromise {
	x.found = x.found[:0]
	from, until := x.between(owner, key)
	for _, e := range x.effects[from:until] {
		p, _ := x.promiseOf(e)
		x.found = append(x.found, p)
	}
	return x.found
}

// of returns the promises of its owner that are about h, until the next call of a method. A release without a mode may
// be of either.
func (x *promiseIndex) of(h *hold) []receivedPromise {
	x.found = x.found[:0]
	from, until := x.between(h.owner, h.key)
	from += sort.Search(until-from, func(i int) bool { return x.latest[from+i] >= h.from })
	for ; from < until && x.soonest[from] < h.until; from++ {
		p, _ := x.promiseOf(x.effects[from])
		if p.at >= h.from && p.at < h.until && (p.reader == h.reader || !p.reader && p.kind == promiseOver) {
			x.found = append(x.found, p)
		}
	}
	return x.found
}
