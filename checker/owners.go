package checker

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"time"
)

// ownerIndex finds the holds of an owner at a key. It is made on first use, because most histories do not need it.
type ownerIndex struct {
	once   sync.Once
	sorted []int32 // holds by owner, key and time of the grant
}

// lastHold is the last hold of an owner that began at or before t, and whether there is one.
func (v *view) lastHold(owner, key int32, t time.Duration) (int32, bool) {
	v.owners.once.Do(func() {
		list := make([]int32, 0, len(v.holds))
		for _, holds := range v.byKey {
			list = append(list, holds...)
		}
		slices.SortStableFunc(list, func(i, j int32) int {
			a, b := &v.holds[i], &v.holds[j]
			return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from))
		})
		v.owners.sorted = list
	})
	list := v.owners.sorted
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
