package history

import "slices"

// maxScanned is the number of open operations of one process that are searched linearly. A process of a recorded
// run has one at a time; in foreign and hostile histories it may have any number.
const maxScanned = 16

// anyKey stands for the key of a completion that names none.
const anyKey = int32(-1)

// openOps are the operations of one process that have no completion yet, as indices of spans. The first maxScanned are
// in one list, in the order of their invocations. Once there are more, each is in three lists: of all, of its
// operation, and of its operation and key. An operation taken from one list stays in the others and is skipped
// there by its Ended, so that every operation costs constant time.
type openOps struct {
	few  []int32
	many map[opKey][]int32 // nil while there are few
	all  []int32           // in the order of invocations, when there are many
}

type opKey struct {
	op  Op
	key int32
}

// add adds operation i, the latest.
func (o *openOps) add(i int32, spans []Span) {
	if o.many == nil && len(o.few) < maxScanned {
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

func (o *openOps) list(i int32, spans []Span) {
	s := &spans[i]
	o.all = append(o.all, i)
	for _, at := range []opKey{{s.Op, s.Key}, {s.Op, anyKey}} {
		o.many[at] = append(o.many[at], i)
	}
}

// first returns the oldest operation.
func (o *openOps) first(spans []Span) (int32, bool) {
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

// take removes and returns the latest operation of that kind and key. The caller must complete it (set its Ended).
func (o *openOps) take(op Op, key int32, spans []Span) (int32, bool) {
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
