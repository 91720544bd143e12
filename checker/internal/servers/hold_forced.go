package servers

import (
	"github.com/lockchaos/lockchaos/history"
)

// force applies forced release i to the holds of one owner.
func (l *OwnerLedger) force(i int32, spans []history.Span) {
	depth, last := int32(-1), l.Ops[len(l.Ops)-1]
	if spans[i].Outcome == history.OK && last.Depth >= 0 && spans[last.Span].Return <= spans[i].Call {
		depth = 0
	}
	l.Ops = append(l.Ops, ledgerOp{i, depth})
}
