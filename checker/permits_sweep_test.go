package checker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// slowPermits is countPermits by examining every pair of holds.
func (v *view) slowPermits(holds []int32, limit int64, o Options, found *findings) (most int64) {
	out := func(i int32, t time.Duration) int64 {
		if !o.applies(permitsTouch) {
			return v.outAfter(i, t, -1)
		}
		return v.outAfter(i, t, o.ClockError)
	}
	for n, j := range holds {
		y := &v.holds[j]
		before, sum := v.weight(j), out(j, y.from)
		var active []int32
		for _, i := range holds[:n] {
			rest := out(i, y.from)
			if rest == 0 {
				continue
			}
			active = append(active, i)
			if sum += rest; y.from-v.holds[i].from > o.ClockError {
				before += rest
			}
		}
		active = append(active, j)
		if y.until-y.from <= o.ClockError {
			if sum = 0; o.ClockError > 0 {
				before = 0
			}
		}
		if most = max(most, sum, before); sum > limit || before > limit {
			end := v.overUntil(active, limit, segment{y.from, y.until})
			found.add(finding{rule: tooMany, x: active[0], y: j, start: y.from, end: end})
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
		v := newView(h, Options{})
		for _, o := range []Options{{}, {ClockError: 2}, Without(Options{}, Permits, permitsTouch)} {
			want, got := newFindings(o), newFindings(o)
			limit := int64(h.Limit(0))
			most := v.slowPermits(v.byKey[0], limit, o, want)
			is, whole := v.countPermits(v.byKey[0], o, got)
			if is != most || !whole || got.total != want.total {
				t.Fatalf("seed %d, %+v: at most %d in %d findings, want %d in %d", seed, o, is, got.total, most, want.total)
			}
			for i := range want.kept {
				if got.kept[i] != want.kept[i] {
					t.Fatalf("seed %d, %+v: found %+v, want %+v", seed, o, got.kept[i], want.kept[i])
				}
			}
			over += want.total
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
