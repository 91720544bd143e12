package ledger

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/history"
)

// maxScanned is up to how many open holds of one owner are scanned one by one. Most owners have one; an owner of many
// keys or permits would otherwise take time that grows with their square.
const maxScanned = 16

// OwnerKey is an owner at a key.
type OwnerKey struct{ Owner, Key int32 }

// Of is the owner of an operation, and its key.
func Of(s *history.Span) OwnerKey { return OwnerKey{s.Owner, s.Key} }

// OfNotice is the owner that a notice is about, and its key.
func OfNotice(n *history.Notice) OwnerKey { return OwnerKey{n.Owner, n.Key} }

// At is the owner of a hold, and its key.
func (h *Hold) At() OwnerKey { return OwnerKey{h.Owner, h.Key} }

// openHolds are the holds that their owners have not released, the latest first: in one list for each owner or, if it
// had many at once, in one list for each of its keys. The lists are linked by hold.next.
type openHolds struct {
	*View
	first []int32            // by owner; none if there is none, or if they are in ByKey
	byKey map[OwnerKey]int32 // of owners that had many; an owner itself is marked at AnyKey
}

func newOpenHolds(v *View, owners int) openHolds {
	return openHolds{View: v, first: slices.Repeat([]int32{refs.None}, owners)}
}

// isListedByKey reports whether an owner's holds are in ByKey.
func (o *openHolds) isListedByKey(owner int32) bool {
	if o.byKey == nil {
		return false
	}
	_, is := o.byKey[OwnerKey{owner, refs.AnyKey}]
	return is
}

// list is the head of the list that contains all open holds of an owner at a key; none if there is none.
func (o *openHolds) list(owner, key int32) int32 {
	if i := o.first[owner]; i >= 0 || o.byKey == nil {
		return i
	}
	if i, held := o.byKey[OwnerKey{owner, key}]; held {
		return i
	}
	return refs.None
}

// push adds hold i, the latest one.
func (o *openHolds) push(i int32) {
	h := &o.Holds[i]
	if o.isListedByKey(h.Owner) {
		h.next = o.list(h.Owner, h.Key)
		o.byKey[h.At()] = i
		return
	}
	h.next = o.first[h.Owner]
	o.first[h.Owner] = i
	n := 0
	for at := i; at >= 0; at = o.Holds[at].next {
		if n++; n > maxScanned {
			o.listByKey(h.Owner)
			return
		}
	}
}

// listByKey makes a list for each key of an owner.
func (o *openHolds) listByKey(owner int32) {
	if o.byKey == nil {
		o.byKey = make(map[OwnerKey]int32)
	}
	var all []int32
	for at := o.first[owner]; at >= 0; at = o.Holds[at].next {
		all = append(all, at)
	}
	o.first[owner] = refs.None
	o.byKey[OwnerKey{owner, refs.AnyKey}] = refs.None
	for n := len(all) - 1; n >= 0; n-- {
		h := &o.Holds[all[n]]
		h.next = o.list(owner, h.Key)
		o.byKey[OwnerKey{owner, h.Key}] = all[n]
	}
}

// unlink removes a hold from its list.
func (o *openHolds) unlink(h *Hold) {
	first := o.list(h.Owner, h.Key)
	if first < 0 {
		return
	}
	if &o.Holds[first] != h {
		for at := &o.Holds[first]; at.next >= 0; at = &o.Holds[at.next] {
			if &o.Holds[at.next] == h {
				at.next = h.next
				return
			}
		}
		return
	}
	switch {
	case o.first[h.Owner] >= 0:
		o.first[h.Owner] = h.next
	case h.next < 0:
		delete(o.byKey, h.At())
	default:
		o.byKey[h.At()] = h.next
	}
}

// byClient finds the holds of a client that crashes: all that began since it last crashed.
type byClient struct {
	seen int             // how many holds are in the lists
	of   map[int][]int32 // by client
}

// since is the holds of a client since its last crash.
func (c *byClient) since(v *View, client int) []int32 {
	for ; c.seen < len(v.Holds); c.seen++ {
		who := v.Client(v.Holds[c.seen].Span)
		c.of[who] = append(c.of[who], int32(c.seen))
	}
	list := c.of[client]
	delete(c.of, client)
	return list
}
