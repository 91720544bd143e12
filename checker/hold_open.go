package checker

import "slices"

// maxScanned is up to how many open holds of one owner are scanned one by one. Most owners have one; an owner of many
// keys or permits would otherwise take time that grows with their square.
const maxScanned = 16

// ownerKey is an owner at a key.
type ownerKey struct{ owner, key int32 }

// openHolds are the holds that their owners have not released, the latest first: in one list for each owner or, if it
// had many at once, in one list for each of its keys. The lists are linked by hold.next.
type openHolds struct {
	*view
	first []int32            // by owner; none if there is none, or if they are in byKey
	byKey map[ownerKey]int32 // of owners that had many; an owner itself is marked at anyKey
}

const (
	none   = int32(-1)
	anyKey = int32(-1)
)

func newOpenHolds(v *view, owners int) openHolds {
	return openHolds{view: v, first: slices.Repeat([]int32{none}, owners)}
}

// isListedByKey reports whether an owner's holds are in byKey.
func (o *openHolds) isListedByKey(owner int32) bool {
	if o.byKey == nil {
		return false
	}
	_, is := o.byKey[ownerKey{owner, anyKey}]
	return is
}

// list is the head of the list that contains all open holds of an owner at a key; none if there is none.
func (o *openHolds) list(owner, key int32) int32 {
	if i := o.first[owner]; i >= 0 || o.byKey == nil {
		return i
	}
	if i, held := o.byKey[ownerKey{owner, key}]; held {
		return i
	}
	return none
}

// push adds hold i, the latest one.
func (o *openHolds) push(i int32) {
	h := &o.holds[i]
	if o.isListedByKey(h.owner) {
		h.next = o.list(h.owner, h.key)
		o.byKey[ownerKey{h.owner, h.key}] = i
		return
	}
	h.next = o.first[h.owner]
	o.first[h.owner] = i
	n := 0
	for at := i; at >= 0; at = o.holds[at].next {
		if n++; n > maxScanned {
			o.listByKey(h.owner)
			return
		}
	}
}

// listByKey makes a list for each key of an owner.
func (o *openHolds) listByKey(owner int32) {
	if o.byKey == nil {
		o.byKey = make(map[ownerKey]int32)
	}
	var all []int32
	for at := o.first[owner]; at >= 0; at = o.holds[at].next {
		all = append(all, at)
	}
	o.first[owner] = none
	o.byKey[ownerKey{owner, anyKey}] = none
	for n := len(all) - 1; n >= 0; n-- {
		h := &o.holds[all[n]]
		h.next = o.list(owner, h.key)
		o.byKey[ownerKey{owner, h.key}] = all[n]
	}
}

// unlink removes a hold from its list.
func (o *openHolds) unlink(h *hold) {
	first := o.list(h.owner, h.key)
	if first < 0 {
		return
	}
	if &o.holds[first] != h {
		for at := &o.holds[first]; at.next >= 0; at = &o.holds[at.next] {
			if &o.holds[at.next] == h {
				at.next = h.next
				return
			}
		}
		return
	}
	switch {
	case o.first[h.owner] >= 0:
		o.first[h.owner] = h.next
	case h.next < 0:
		delete(o.byKey, ownerKey{h.owner, h.key})
	default:
		o.byKey[ownerKey{h.owner, h.key}] = h.next
	}
}

// byClient finds the holds of a client that crashes: all that began since it last crashed.
type byClient struct {
	seen int             // how many holds are in the lists
	of   map[int][]int32 // by client
}

// since is the holds of a client since its last crash.
func (c *byClient) since(v *view, client int) []int32 {
	for ; c.seen < len(v.holds); c.seen++ {
		who := v.client(v.holds[c.seen].span)
		c.of[who] = append(c.of[who], int32(c.seen))
	}
	list := c.of[client]
	delete(c.of, client)
	return list
}
