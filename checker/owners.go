package checker

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"time"
)

// ownerHolds are all holds by owner, key and time of the grant.
type ownerHolds struct {
	*view
	list   []int32
	latest []time.Duration // by place in list: until when its owner relied on it or on an earlier one, or was promised it
}

// orderByOwner sorts the holds by owner.
func (v *view) orderByOwner() *ownerHolds {
	o := &ownerHolds{view: v, list: slices.Concat(v.byKey...)}
	slices.SortStableFunc(o.list, func(i, j int32) int {
		a, b := &v.holds[i], &v.holds[j]
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from))
	})
	o.latest = make([]time.Duration, len(o.list))
	for n, i := range o.list {
		h := &v.holds[i]
		o.latest[n] = h.until
		if end := h.lastPromise(); end < never {
			o.latest[n] = max(h.until, end)
		}
		if n > 0 && o.isOf(n-1, h.owner, h.key) {
			o.latest[n] = max(o.latest[n], o.latest[n-1])
		}
	}
	return o
}

// isOf reports whether the hold at a place of the list is one of an owner at a key.
func (o *ownerHolds) isOf(n int, owner, key int32) bool {
	h := &o.holds[o.list[n]]
	return h.owner == owner && h.key == key
}

// after is the first place of the list behind the holds of an owner at a key that began at or before t.
func (o *ownerHolds) after(owner, key int32, t time.Duration) int {
	return sort.Search(len(o.list), func(n int) bool {
		h := &o.holds[o.list[n]]
		return cmp.Or(cmp.Compare(h.owner, owner), cmp.Compare(h.key, key), cmp.Compare(h.from, t)) > 0
	})
}

// begun visits the holds of an owner at a key that began at or before t: the last grant first.
func (o *ownerHolds) begun(owner, key int32, t time.Duration) iter.Seq2[int32, *hold] {
	return func(yield func(int32, *hold) bool) {
		for n := o.after(owner, key, t) - 1; n >= 0 && o.isOf(n, owner, key); n-- {
			if i := o.list[n]; !yield(i, &o.holds[i]) {
				return
			}
		}
	}
}

// at visits at least the holds on which the owner relied at t or later, or whose promise ended then.
func (o *ownerHolds) at(owner, key int32, t time.Duration) iter.Seq2[int32, *hold] {
	return func(yield func(int32, *hold) bool) {
		for n := o.after(owner, key, t) - 1; n >= 0 && o.isOf(n, owner, key) && o.latest[n] >= t; n-- {
			if i := o.list[n]; !yield(i, &o.holds[i]) {
				return
			}
		}
	}
}

// lastHold is the last hold of an owner that began at or before t, and whether there is one.
func (v *view) lastHold(owner, key int32, t time.Duration) (int32, bool) {
	o := v.byOwner()
	n := o.after(owner, key, t)
	if n == 0 {
		return -1, false
	}
	return o.list[n-1], o.isOf(n-1, owner, key)
}

// grantedAfter are the holds of a key that were granted after t.
func (v *view) grantedAfter(key int32, t time.Duration) []int32 {
	holds := v.byKey[key]
	return holds[sort.Search(len(holds), func(n int) bool { return v.holds[holds[n]].from > t }):]
}
