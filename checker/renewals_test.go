package checker

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// TestRenewalsExtendLeases compares the sorted pass with a scan of every renewal for every hold.
func TestRenewalsExtendLeases(t *testing.T) {
	prolonged := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		h := renewedHistory(r, 40, 3, 2)
		e := bounds.NewExtents(bounds.New(h, given.Options{}))
		if e.Renewed == nil {
			continue
		}
		want := make([]time.Duration, len(e.Holds))
		for _, n := range e.RenewalList() {
			for i := range e.Holds {
				x := &e.Holds[i]
				if x.Ending != ledger.EndReleased && x.Owner == n.Owner && x.Key == n.Key && x.From <= n.At {
					want[i] = max(want[i], segment.Later(n.At, cmp.Or(n.Lease, h.Spans[x.Span].Lease, e.LongestLease)))
					prolonged++
				}
			}
		}
		for i := range want {
			if e.Renewed[i] != want[i] {
				t.Fatalf("seed %d: hold %d is renewed until %v, want %v", seed, i, e.Renewed[i], want[i])
			}
		}
	}
	if prolonged < 1000 {
		t.Errorf("only %d renewals prolonged a hold: the test shows nothing", prolonged)
	}
}

// renewedHistory is holds of a few owners with renewals in and after them, many of which are not released.
func renewedHistory(r *rand.Rand, n, owners, keys int) *history.History {
	h := &history.History{Keys: make([]string, keys), Owners: make([]string, owners)}
	now := time.Duration(0)
	event := int32(0)
	add := func(s history.Span) {
		s.Call, s.Invoked = now, event
		now += time.Duration(r.IntN(3))
		s.Return, s.Ended = now, event+1
		event += 2
		if now += time.Duration(r.IntN(3)); s.Outcome == history.Info {
			h.Unknown = append(h.Unknown, history.Unknown{Time: s.Return, Span: int32(len(h.Spans))})
			s.Return = segment.Never
		}
		h.Spans = append(h.Spans, s)
	}
	for range n {
		s := history.Span{Owner: int32(r.IntN(owners)), Key: int32(r.IntN(keys)), Op: history.OpAcquire, Permits: 1,
			Outcome: history.OK, Write: true, Lease: time.Duration(r.IntN(3)) * 10}
		add(s)
		for s.Op = history.OpRenew; r.IntN(3) > 0; {
			s.Lease = time.Duration(r.IntN(3)) * 7
			s.Outcome = history.OK
			if r.IntN(5) == 0 {
				s.Outcome = history.Info
			}
			add(s)
			if r.IntN(4) == 0 {
				n := history.Notice{Time: now, Index: event, Key: s.Key, Owner: s.Owner, F: history.Renewed}
				h.Notices = append(h.Notices, n)
				event++
			}
		}
		if s.Op, s.Lease, s.Outcome = history.OpRelease, 0, history.OK; r.IntN(3) == 0 {
			add(s)
		}
	}
	h.End, h.Events = now, int(event)
	return h
}
