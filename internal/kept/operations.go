package kept

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/history"
)

// Operations are some spans by owner, then by key, then in their order.
type Operations struct {
	spans []history.Span
	list  []int32
	first []int32 // by owner: its first place in list
}

// NewOperations sorts spans of a history that are in their order.
func NewOperations(h *history.History, all []int32) Operations {
	o := Operations{spans: h.Spans, list: make([]int32, len(all)), first: make([]int32, len(h.Owners)+1)}
	for _, i := range all {
		o.first[h.Spans[i].Owner+1]++
	}
	for owner := range h.Owners {
		o.first[owner+1] += o.first[owner]
	}
	next := slices.Clone(o.first)
	for _, i := range all {
		n := &next[h.Spans[i].Owner]
		o.list[*n] = i
		*n++
	}
	if len(h.Keys) > 1 {
		for owner := range h.Owners {
			slices.SortStableFunc(o.list[o.first[owner]:o.first[owner+1]], func(a, b int32) int {
				return cmp.Compare(h.Spans[a].Key, h.Spans[b].Key)
			})
		}
	}
	return o
}

// of are the spans of an owner at a key.
func (o Operations) of(owner, key int32) []int32 {
	list := o.list[o.first[owner]:o.first[owner+1]]
	from := sort.Search(len(list), func(n int) bool { return o.spans[list[n]].Key >= key })
	until := sort.Search(len(list), func(n int) bool { return o.spans[list[n]].Key > key })
	return list[from:until]
}

// ByKey are the spans of an owner at each of its keys.
func (o Operations) ByKey(owner int32) iter.Seq[[]int32] {
	return func(yield func([]int32) bool) {
		list := o.list[o.first[owner]:o.first[owner+1]]
		for len(list) > 0 {
			n := slices.IndexFunc(list, func(i int32) bool { return o.spans[i].Key != o.spans[list[0]].Key })
			if n < 0 {
				n = len(list)
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}
