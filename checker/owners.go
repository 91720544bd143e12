package checker

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// orderByOwner sorts the holds by owner, key and time of the grant.
func (v *view) orderByOwner() []int32 {
	list := slices.Concat(v.byKey...)
	slices.SortStableFunc(list, func(i, j int32) int {
		a, b := &v.holds[i], &v.holds[j]
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from))
	})
	return list
}

// lastHold is the last hold of an owner that began at or before t, and whether there is one.
func (v *view) lastHold(owner, key int32, t time.Duration) (int32, bool) {
	list := v.byOwner()
	n := sort.Search(len(list), func(n int) bool {
		h := &v.holds[list[n]]
		return cmp.Or(cmp.Compare(h.owner, owner), cmp.Compare(h.key, key), cmp.Compare(h.from, t)) > 0
	})
	if n == 0 {
		return -1, false
	}
	h := &v.holds[list[n-1]]
	return list[n-1], h.owner == owner && h.key == key
}
