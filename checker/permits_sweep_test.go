package checker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/exclusion"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// slowPermits is CountPermits by examining every pair of holds.
func slowPermits(v *bounds.View, holds []int32, limit int64, o given.Options, found *finding.Findings) (most int64) {
	out := func(i int32, t time.Duration) int64 {
		if !o.Applies(exclusion.PermitsTouch) {
			return v.OutAfter(i, t, -1)
		}
		return v.OutAfter(i, t, o.ClockError)
	}
	for n, j := range holds {
		y := &v.Holds[j]
		before, sum := v.Weight(j), out(j, y.From)
		var active []int32
		for _, i := range holds[:n] {
			rest := out(i, y.From)
			if rest == 0 {
				continue
			}
			active = append(active, i)
			if sum += rest; y.From-v.Holds[i].From > o.ClockError {
				before += rest
			}
		}
		active = append(active, j)
		if y.Until-y.From <= o.ClockError {
			if sum = 0; o.ClockError > 0 {
				before = 0
			}
		}
		if most = max(most, sum, before); sum > limit || before > limit {
			end := exclusion.OverUntil(v, active, limit, segment.Of(y.From, y.Until))
			found.Add(finding.Finding{Rule: exclusion.TooMany, X: active[0], Y: j, Start: y.From, End: end})
		}
	}
	return most
}

func TestPermitSweep(t *testing.T) {
	race.Skip(t)
	over := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 11))
		h := permitHistory(r)
		v := bounds.New(h, given.Options{})
		for _, o := range []given.Options{{}, {Options: property.Options{ClockError: 2}},
			{Off: given.DisabledRules{Of: property.Permits, Rules: 1 << exclusion.PermitsTouch}}} {
			want, got := finding.New(o), finding.New(o)
			limit := int64(h.Limit(0))
			most := slowPermits(v, v.ByKey[0], limit, o, want)
			is, whole := exclusion.CountPermits(v, v.ByKey[0], o, got)
			if is != most || !whole || got.Total != want.Total {
				t.Fatalf("seed %d, %+v: at most %d in %d findings, want %d in %d", seed, o, is, got.Total, most, want.Total)
			}
			for i := range want.Kept {
				if got.Kept[i] != want.Kept[i] {
					t.Fatalf("seed %d, %+v: found %+v, want %+v", seed, o, got.Kept[i], want.Kept[i])
				}
			}
			over += want.Total
		}
	}
	if over < 1000 {
		t.Errorf("only %d grants were too many: the test shows nothing", over)
	}
}

// permitHistory is a history of a few owners that acquire several permits, and release them in parts.
func permitHistory(r *rand.Rand) *history.History {
	s := newStrip(1, 4)
	s.h.Limits = []int32{int32(2 + r.IntN(5))}
	for range 30 {
		op := history.OpAcquire
		if r.IntN(2) == 0 {
			op = history.OpRelease
		}
		s.add(op, r.IntN(4), 0, func(p *history.Span) {
			p.Permits = int32(1 + r.IntN(3))
			p.Return = p.Call + time.Duration(r.IntN(3))
			s.now = p.Return
		})
		s.now = s.h.Spans[len(s.h.Spans)-1].Return + time.Duration(r.IntN(2))
	}
	return s.done()
}
