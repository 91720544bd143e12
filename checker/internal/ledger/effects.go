package ledger

import (
	"cmp"
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/history"
)

// NoEffect stands for an event without an effect, see EffectOrder.
const NoEffect = int32(-1 << 31)

// EffectOrder is the order in which spans and notices changed the beliefs of owners: a grant counts when it returned, a
// release when it was invoked. A span is its index, a notice is -1 minus its index. Each event index is a slot of its
// own, so that nothing has to be sorted; slots without an effect hold NoEffect.
func EffectOrder(h *history.History) []int32 {
	count, top := 0, int32(-1)
	eachEffect(h, func(at, _ int32) {
		count++
		top = max(top, at)
	})
	if int(top) > 8*count+1024 { // the indices have large gaps
		return sparseEffectOrder(h, count)
	}
	slots := slices.Repeat([]int32{NoEffect}, int(top+1))
	eachEffect(h, func(at, effect int32) { slots[at] = effect })
	return slots
}

func eachEffect(h *history.History, visit func(at, effect int32)) {
	for i, s := range refs.All(h.Spans) {
		at := int32(-1)
		switch s.Op {
		case history.OpRelease:
			at = s.Invoked
		case history.OpAcquire, history.OpTry, history.OpRenew:
			at = s.Ended
		case history.OpForceRelease:
			if s.Outcome == history.OK {
				at = s.Ended
			}
		}
		if at >= 0 {
			visit(at, i)
		}
	}
	for i, n := range refs.All(h.Notices) {
		if n.Index >= 0 {
			visit(n.Index, -i-1)
		}
	}
}

func sparseEffectOrder(h *history.History, count int) []int32 {
	type mark struct{ at, effect int32 }
	marks := make([]mark, 0, count)
	eachEffect(h, func(at, effect int32) { marks = append(marks, mark{at, effect}) })
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	order := make([]int32, 0, count)
	for _, m := range marks {
		order = append(order, m.effect)
	}
	return order
}
