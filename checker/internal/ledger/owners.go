package ledger

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/segment"
)

// MaxLookBack is how many holds are searched for a holder.
const MaxLookBack = 64

// ownerHolds are all holds by owner, key and time of the grant.
type ownerHolds struct {
	*View
	list   []int32
	latest []time.Duration // by place in list: until when its owner relied on it or on an earlier one, or was promised it
}

// orderByOwner sorts the holds by owner.
func (v *View) orderByOwner() *ownerHolds {
	o := &ownerHolds{View: v, list: slices.Concat(v.ByKey...)}
	slices.SortStableFunc(o.list, func(i, j int32) int {
		a, b := &v.Holds[i], &v.Holds[j]
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Key, b.Key), cmp.Compare(a.From, b.From))
	})
	o.latest = make([]time.Duration, len(o.list))
	for n, i := range o.list {
		h := &v.Holds[i]
		o.latest[n] = h.Until
		if end := h.LastPromise(); end < segment.Never {
			o.latest[n] = max(h.Until, end)
		}
		if n > 0 && o.isOf(n-1, h.Owner, h.Key) {
			o.latest[n] = max(o.latest[n], o.latest[n-1])
		}
	}
	return o
}

// isOf reports whether the hold at a place of the list is one of an owner at a key.
func (o *ownerHolds) isOf(n int, owner, key int32) bool {
	h := &o.Holds[o.list[n]]
	return h.Owner == owner && h.Key == key
}

// after is the first place of the list behind the holds of an owner at a key that began at or before t.
func (o *ownerHolds) after(owner, key int32, t time.Duration) int {
	return sort.Search(len(o.list), func(n int) bool {
		h := &o.Holds[o.list[n]]
		return cmp.Or(cmp.Compare(h.Owner, owner), cmp.Compare(h.Key, key), cmp.Compare(h.From, t)) > 0
	})
}

// Begun visits the holds of an owner at a key that began at or before t: the last grant first.
func (o *ownerHolds) Begun(owner, key int32, t time.Duration) iter.Seq2[int32, *Hold] {
	return func(yield func(int32, *Hold) bool) {
		for n := o.after(owner, key, t) - 1; n >= 0 && o.isOf(n, owner, key); n-- {
			if i := o.list[n]; !yield(i, &o.Holds[i]) {
				return
			}
		}
	}
}

// At visits at least the holds on which the owner relied at t or later, or whose promise ended then.
func (o *ownerHolds) At(owner, key int32, t time.Duration) iter.Seq2[int32, *Hold] {
	return func(yield func(int32, *Hold) bool) {
		for n := o.after(owner, key, t) - 1; n >= 0 && o.isOf(n, owner, key) && o.latest[n] >= t; n-- {
			if i := o.list[n]; !yield(i, &o.Holds[i]) {
				return
			}
		}
	}
}

// LastHold is the last hold of an owner that began at or before t, and whether there is one.
func (v *View) LastHold(owner, key int32, t time.Duration) (int32, bool) {
	o := v.ByOwner()
	n := o.after(owner, key, t)
	if n == 0 {
		return -1, false
	}
	return o.list[n-1], o.isOf(n-1, owner, key)
}

// GrantedAfter are the holds of a key that were granted after t.
func (v *View) GrantedAfter(key int32, t time.Duration) []int32 {
	holds := v.ByKey[key]
	return holds[sort.Search(len(holds), func(n int) bool { return v.Holds[holds[n]].From > t }):]
}
