package ledger

import (
	"slices"
	"testing"

	"github.com/lockchaos/lockchaos/history"
)

// TestRareSpans: rules about other operations than acquires and releases, about unknown outcomes and about flags read
// only the rare spans.
func TestRareSpans(t *testing.T) {
	common := func(set func(*history.Span)) history.Span {
		s := history.Span{Op: history.OpRelease, Outcome: history.OK}
		set(&s)
		return s
	}
	h := &history.History{Spans: []history.Span{
		common(func(*history.Span) {}),
		common(func(s *history.Span) { s.Op, s.Write = history.OpAcquire, true }),
		common(func(s *history.Span) { s.Op, s.Write, s.Outcome = history.OpAcquire, true, history.Fail }),
		common(func(s *history.Span) { s.Op = history.OpAcquire }), // to read
		common(func(s *history.Span) { s.Outcome = history.Info }),
		common(func(s *history.Span) { s.Busy = true }),
		common(func(s *history.Span) { s.Undone = true }),
		common(func(s *history.Span) { s.Denied = true }),
		common(func(s *history.Span) { s.Expired = true }),
		common(func(s *history.Span) { s.Part = true }),
	}}
	for op := history.OpTry; op <= history.OpReopen; op++ {
		if op != history.OpRelease {
			h.Spans = append(h.Spans, common(func(s *history.Span) { s.Op = op }))
		}
	}
	var want []int32
	for i := 3; i < len(h.Spans); i++ {
		want = append(want, int32(i))
	}
	if got := rareSpans(h); !slices.Equal(got, want) {
		t.Errorf("rare are %v, want %v", got, want)
	}
}
