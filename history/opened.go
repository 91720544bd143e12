package history

import "slices"

// fewOpen is up to how many open operations of one process are looked through
// one by one. A process of ours has one at a time; histories of others, and
// hostile ones, may have any number.
const fewOpen = 16

// anyKey stands for the key of a completion that names none.
const anyKey = int32(-1)

// opened is the operations of one process that are not completed, as indices of
// spans. While there are few they stand in a list, in the order of their
// invocations. When there were more once, each is in three lists: of all, of its
// operation, and of its operation and key; what was taken from one is left in the
// others and passed over there, so that each step is made once.
type opened struct {
	few  []int32
	many map[opKey][]int32 // nil while there are few
	all  []int32           // in the order of invocations, when there are many
}

type opKey struct {
	op  Op
	key int32
}

// add opens operation i, which is the latest.
func (o *opened) add(i int32, spans []Span) {
	if o.many == nil && len(o.few) < fewOpen {
		o.few = append(o.few, i)
		return
	}
	if o.many == nil {
		o.many = make(map[opKey][]int32)
		for _, i := range o.few {
			o.list(i, spans)
		}
		o.few = nil
	}
	o.list(i, spans)
}

func (o *opened) list(i int32, spans []Span) {
	s := &spans[i]
	o.all = append(o.all, i)
	for _, at := range []opKey{{s.Op, s.Key}, {s.Op, anyKey}} {
		o.many[at] = append(o.many[at], i)
	}
}

// first is the operation that has been open for longest.
func (o *opened) first(spans []Span) (int32, bool) {
	if len(o.few) > 0 {
		return o.few[0], true
	}
	for len(o.all) > 0 && spans[o.all[0]].Ended >= 0 {
		o.all = o.all[1:]
	}
	if len(o.all) == 0 {
		return 0, false
	}
	return o.all[0], true
}

// take takes out the latest operation of that name and key. Whoever takes it
// completes it: sets its Ended.
func (o *opened) take(op Op, key int32, spans []Span) (int32, bool) {
	for n := len(o.few) - 1; n >= 0; n-- {
		i := o.few[n]
		if s := &spans[i]; s.Op == op && (key == anyKey || s.Key == key) {
			o.few = slices.Delete(o.few, n, n+1)
			return i, true
		}
	}
	if o.many == nil {
		return 0, false
	}
	at := opKey{op, key}
	list := o.many[at]
	defer func() { o.many[at] = list }()
	for len(list) > 0 {
		i := list[len(list)-1]
		list = list[:len(list)-1]
		if spans[i].Ended < 0 {
			return i, true
		}
	}
	return 0, false
}
