package linear

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// permitHold is some permits of a semaphore that one owner got with one grant and released together. A release
// returns the permits acquired last: permits are alike, so any other choice adds up to the same.
type permitHold struct {
	asked, from, core, freeBy time.Duration // as in hold
	permits                   int32
	owner                     int32
	span                      int32 // of the acquire
	ending                    ledger.Ending
}

// permitFold finds the permitHolds of a semaphore, in the order of effects. Which holds were lost, and when, is in the
// ledger.
type permitFold struct {
	*bounds.View
	k     *KeyOps
	owner map[int32]*permitOwner
	lost  map[int32]time.Duration // by acquire of a lost hold: when it ended
}

type permitOwner struct {
	open      []int32 // permitHolds, the latest last
	lost      bool    // its permits are lost
	regranted bool    // and it was granted permits again
	at        time.Duration
	acquired  int32 // permits acquired at that instant; -1: and released
}

// preparePermits finds the permitHolds of a semaphore, and the facts about lost ones that the search needs.
func preparePermits(v *bounds.View, k *KeyOps) {
	d := permitFold{View: v, k: k, owner: make(map[int32]*permitOwner), lost: make(map[int32]time.Duration)}
	k.epochs, k.Drops, k.dropped, k.Orphans = make(epochs), nil, nil, nil
	k.permitHolds = make([]permitHold, 0, len(k.Spans)/2)
	type mark struct {
		at, effect int32 // event, and span or -1 minus the hold that was lost
	}
	marks := make([]mark, 0, len(k.Spans))
	for i, s := range refs.At(v.H.Spans, k.Spans) {
		switch {
		case v.OwnerOrder[s.Owner] == ledger.OrdUnknown:
		case s.Op == history.OpRelease:
			marks = append(marks, mark{s.Invoked, i})
		case s.Outcome == history.OK:
			marks = append(marks, mark{s.Ended, i})
		}
	}
	for i, h := range refs.At(v.Holds, v.ByKey[k.key]) {
		n := v.NoticeAt(h.EndEvent)
		if h.EndEvent < 0 || h.Ending != ledger.EndLost && n == nil {
			continue
		}
		marks = append(marks, mark{h.EndEvent, -i - 1})
		if d.lost[h.Span] = h.Core; n != nil { // it may be older than the record of the grant
			d.lost[h.Span] = min(h.Core, n.Time)
		}
	}
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	for _, m := range marks {
		switch {
		case m.effect < 0:
			d.lose(&v.Holds[-m.effect-1])
		case v.H.Spans[m.effect].Op == history.OpRelease:
			d.release(m.effect, &v.H.Spans[m.effect])
		default:
			d.acquire(m.effect, &v.H.Spans[m.effect])
		}
	}
}

func (d *permitFold) of(owner int32) *permitOwner {
	p := d.owner[owner]
	if p == nil {
		p = &permitOwner{at: -1}
		d.owner[owner] = p
	}
	return p
}

// checkInstant counts the operations of an owner at t. If they were more than a release, then an acquire, and its
// release, at one instant, there is no order that is known to be best, and the sweep is not exact.
func (d *permitFold) checkInstant(p *permitOwner, t time.Duration, taken int32) {
	if p.at != t {
		p.at, p.acquired = t, 0
	}
	switch {
	case p.acquired == 0:
		p.acquired = max(0, taken)
	case p.acquired > 0 && taken == -p.acquired:
		p.acquired = -1
	default:
		d.k.Exact = false
	}
}

func (d *permitFold) acquire(i int32, s *history.Span) {
	p := d.of(s.Owner)
	d.checkInstant(p, s.Return, s.Permits)
	if p.lost && !p.regranted {
		d.k.epochs.begin(s.Owner, s.Ended)
		p.regranted = true
	}
	p.open = append(p.open, int32(len(d.k.permitHolds)))
	d.k.permitHolds = append(d.k.permitHolds, permitHold{asked: s.Call, from: s.Return, core: segment.Never,
		freeBy:  segment.Never,
		permits: s.Permits, owner: s.Owner, span: i})
}

func (d *permitFold) release(i int32, s *history.Span) {
	if s.Outcome == history.Fail { // nothing has changed, or the permits are lost
		return
	}
	p := d.of(s.Owner)
	d.checkInstant(p, s.Call, -s.Permits)
	how := ledger.EndUnknown
	if s.Outcome == history.OK {
		how = ledger.EndReleased
	}
	n := s.Permits
	for n > 0 && len(p.open) > 0 {
		last := p.open[len(p.open)-1]
		y := d.k.permitHolds[last]
		if y.permits > n { // a part of it is still held
			d.k.permitHolds[last].permits -= n
			y.permits = n
			last = int32(len(d.k.permitHolds))
			d.k.permitHolds = append(d.k.permitHolds, y)
		} else {
			p.open = p.open[:len(p.open)-1]
		}
		n -= y.permits
		d.k.permitHolds[last].core, d.k.permitHolds[last].freeBy, d.k.permitHolds[last].ending = s.Call, s.Return, how
	}
	switch {
	case n == 0:
	case s.Outcome != history.OK: // it had no effect, so the owner may have kept its permits
		d.k.Exact = false
	case d.OwnerOrder[s.Owner] == ledger.OrdSequential && !p.lost:
		d.k.Orphans = append(d.k.Orphans, i)
	default:
		d.k.Unjudgeable, d.k.unjudgeableWhy, d.k.Exact = true, ledger.MoreReleased, false
	}
}

// lose ends the lost holds of the owner of one of them.
func (d *permitFold) lose(h *ledger.Hold) {
	p, first := d.of(h.Owner), segment.Never
	p.open = slices.DeleteFunc(p.open, func(i int32) bool {
		y := &d.k.permitHolds[i]
		end, is := d.lost[y.span]
		if is {
			y.core, y.ending = end, ledger.EndLost
			first = min(first, end)
		}
		if is && p.at == end && p.acquired != 0 { // see checkInstant
			d.k.Exact = false
		}
		return is
	})
	if first == segment.Never {
		return
	}
	d.k.dropped = append(d.k.dropped, h.EndEvent)
	d.k.Drops = append(d.k.Drops, search.Op{Call: first, Return: segment.Never, Owner: h.Owner,
		Epoch: d.k.epochs.of(h.Owner, h.EndEvent), Span: -1, Process: d.H.Spans[h.Span].Process,
		Kind: search.OpHoldLost, Unknown: true, Permits: 1, Depth: -1})
	p.lost, p.regranted = true, false
}

// SweepPermits finds the grants without enough permits. It is exact if the key is: to acquire permits as late and to
// release them as early as possible leaves the most of them at every instant at once. Within one instant, holds that
// end are released first, holds of no length come one after the other, and lasting holds are acquired last.
//
// Holds that the clock error may have reduced to nothing are skipped.
func SweepPermits(v *bounds.View, k *KeyOps, slack time.Duration, visit func(Flaw)) {
	for i, s := range refs.At(v.H.Spans, k.Orphans) {
		visit(Flaw{X: -1, y: i, Kind: search.OpRelease, Segment: segment.Of(s.Call, s.Return)})
	}
	begin := make([]int32, 0, len(k.permitHolds))
	for i, y := range refs.All(k.permitHolds) {
		if y.core >= segment.Later(y.from, slack) {
			begin = append(begin, i)
		}
	}
	moment := func(y *permitHold) int { // within an instant: holds of no length before lasting ones
		if y.core == segment.Later(y.from, slack) {
			return 0
		}
		return 1
	}
	finish := slices.Clone(begin)
	slices.SortStableFunc(begin, func(a, b int32) int {
		x, y := &k.permitHolds[a], &k.permitHolds[b]
		return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(moment(x), moment(y)))
	})
	slices.SortStableFunc(finish, func(a, b int32) int {
		return cmp.Compare(k.permitHolds[a].core, k.permitHolds[b].core)
	})
	out, n, last := int64(0), 0, int32(-1)
	for i, y := range refs.At(k.permitHolds, begin) {
		for ; n < len(finish) && k.permitHolds[finish[n]].core <= segment.Later(y.from, slack); n++ {
			if x := &k.permitHolds[finish[n]]; moment(x) == 1 {
				out -= int64(x.permits)
			}
		}
		if out+int64(y.permits) > int64(k.Permits) {
			visit(Flaw{X: last, y: i, Kind: search.OpNoPermits, Segment: segment.Of(y.from, y.core)})
		}
		if moment(y) == 1 {
			out += int64(y.permits)
		}
		if last < 0 || y.core > k.permitHolds[last].core {
			last = i
		}
	}
}

// permitOps is the part of a semaphore's history in which permits were held at t: each permitHold as one grant and
// one release, and each as if it had its own owner.
func (k *KeyOps) permitOps(v *bounds.View, t time.Duration) []search.Op {
	var ops []search.Op
	for i, y := range refs.All(k.permitHolds) {
		if y.from > t || y.core < t {
			continue
		}
		grant := search.Op{Call: y.asked, Return: y.from, Owner: y.owner, Epoch: i, Pos: -1, Span: y.span,
			Process: v.H.Spans[y.span].Process, Permits: y.permits, Write: true, Depth: -1}
		ops = appendHold(ops, grant, y.core, y.freeBy, y.ending)
	}
	return ops
}
