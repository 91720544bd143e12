package checker

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// sketch is an operation of a random history before it becomes a span.
type sketch struct {
	op         history.Op
	outcome    history.Type
	owner      int32
	call, back int
	permits    int32
	busy, read bool
	lease      int
	leftHeld   bool   // a release that failed and left the lock held
	notice     string // a notice instead of an operation
}

// sketcher draws small random histories of one key and one kind of lock. It draws holds where there is room for them,
// and then corrupts some operations. It makes spans, not events, which is fast enough for millions. Times are small
// numbers, so that many are equal.
type sketcher struct {
	r       *rand.Rand
	source  choices
	kind    search.Kind
	rich    bool // see sketch_rich_test.go
	tokens  bool // rich: also of locks that are not fenced mutexes
	counts  bool // rich: replies have hold counts
	permits int32
	used    [96]int32 // of the room, by unit of time
	ops     []sketch
	owners  int32
	h       history.History
	marks   []sketchMark
	span    []int32
}

// sketchMark is an event: the call or the return of an operation.
type sketchMark struct {
	at, op int
	back   bool
}

func newSketcher(kind search.Kind) *sketcher {
	s := &sketcher{kind: kind}
	s.r = rand.New(&s.source)
	s.h.Keys = []string{"k"}
	return s
}

// choices is the source of a sketcher's decisions: bytes of a fuzzer, and then a seed.
type choices struct {
	bytes []byte
	pcg   rand.PCG
}

// Uint64 has the next byte where [rand.Rand.IntN] looks first.
func (c *choices) Uint64() uint64 {
	n := c.pcg.Uint64()
	if len(c.bytes) == 0 {
		return n
	}
	b := c.bytes[0]
	c.bytes = c.bytes[1:]
	return uint64(b)<<56 | n>>8
}

func (d *sketcher) some(n int) int { return d.r.IntN(n + 1) }

func (d *sketcher) once(percent int) bool { return d.r.IntN(100) < percent }

// draw makes the history of a seed. It lives until the next draw.
func (d *sketcher) draw(seed uint64) *history.History {
	stream := uint64(d.kind) + 100
	if d.rich {
		stream += 100
	}
	d.source.bytes = nil
	d.source.pcg.Seed(seed, stream)
	return d.make()
}

// drawFrom makes the history of some bytes. It lives until the next draw.
func (d *sketcher) drawFrom(bytes []byte) *history.History {
	d.source.bytes = bytes
	d.source.pcg.Seed(0, uint64(d.kind))
	return d.make()
}

// Bounds, because the search takes time exponential in the tries that are in flight at once.
const mostRefusals, mostSpoils = 8, 24

func (d *sketcher) make() *history.History {
	d.ops, d.owners, d.used, d.permits = d.ops[:0], 0, [96]int32{}, 1
	if d.kind.Shared() {
		d.permits = int32(1 + d.some(2))
	}
	if d.kind == search.ReadersWriter {
		d.permits = 8
	}
	for n := 2 + d.r.IntN(4); n > 0; n-- {
		d.hold()
	}
	for n := 0; d.once(25) && n < mostRefusals; n++ {
		d.refusal()
	}
	for n := 0; d.once(55) && n < mostSpoils; n++ {
		d.corrupt()
	}
	for i := range d.ops {
		if o := &d.ops[i]; d.rich && o.op == history.OpRelease && d.once(50) {
			o.read = false // most histories do not record the mode of a release
		}
	}
	d.build()
	return &d.h
}

// room is the first time from t on at which that many permits are free for that long.
func (d *sketcher) room(t, long int, n int32) int {
	for ; t < len(d.used)-long; t++ {
		fits := true
		for i := t; i < t+long; i++ {
			fits = fits && d.used[i]+n <= d.permits
		}
		if fits {
			return t
		}
	}
	return t
}

func (d *sketcher) hold() {
	owner := d.owners
	if d.owners++; d.once(5) && owner > 0 {
		owner = int32(d.r.IntN(int(owner)))
	}
	o := sketch{op: history.OpAcquire, outcome: history.OK, owner: owner, permits: 1}
	room := int32(1)
	switch {
	case d.kind == search.Semaphore:
		o.permits = int32(1 + d.some(int(d.permits)-1))
		room = o.permits
	case d.kind == search.ReadersWriter && d.once(55):
		o.read = true
	case d.kind == search.ReadersWriter:
		room = d.permits
	}
	if d.once(20) {
		o.op = history.OpTry
	}
	if d.once(30) {
		o.lease = 4 + d.some(12)
	}
	if d.once(8) {
		d.unknownOutcome(o)
		return
	}
	long := d.some(6)
	from := d.room(d.some(8), long, room)
	for i := from; i < from+long; i++ {
		d.used[i] += room
	}
	o.call, o.back = max(0, from-d.some(6)), from
	d.ops = append(d.ops, o)
	d.insideHold(o, from, from+long)
}

// unknownOutcome is an acquire of unknown outcome, and perhaps the release after it.
func (d *sketcher) unknownOutcome(o sketch) {
	o.outcome, o.call = history.Info, d.some(20)
	if d.once(50) {
		o.lease = 1 + d.some(9)
	}
	d.ops = append(d.ops, o)
	if d.once(30) {
		o.op, o.outcome = history.OpRelease, history.OK
		o.call += d.some(3)
		o.back = o.call + d.some(3)
		d.ops = append(d.ops, o)
	}
}

// insideHold draws the actions of the owner from its grant to its release at until.
func (d *sketcher) insideHold(o sketch, from, until int) {
	if d.rich && d.richInside(o, from, until) {
		return
	}
	depth := 1
	for d.kind.Reentrant() && d.kind != search.Semaphore && d.once(25) && depth < 3 {
		o.call = from + d.some(max(0, until-from))
		o.back = o.call + d.some(max(0, until-o.call))
		from = o.back
		if o.outcome = history.OK; d.once(8) {
			o.outcome = history.Info
		} else {
			depth++
		}
		d.ops = append(d.ops, o)
	}
	if d.once(6) {
		d.loss(o.owner, until)
		return
	}
	o.op = history.OpRelease
	for ; depth > 0; depth-- {
		o.call = until
		if depth > 1 {
			o.call = from + d.some(max(0, until-from))
		}
		o.back = o.call + d.some(3)
		if depth > 1 {
			o.back = min(o.back, until)
		}
		from = o.back
		if o.outcome = history.OK; d.once(8) {
			o.outcome = history.Info
		}
		d.ops = append(d.ops, o)
	}
}

func (d *sketcher) loss(owner int32, at int) {
	notice := sketch{owner: owner, call: at, back: at, notice: history.Lost}
	if d.once(50) {
		notice.notice = history.Crash
	}
	d.ops = append(d.ops, notice)
	if d.once(30) {
		o := sketch{op: history.OpRelease, outcome: history.Fail, owner: owner, permits: 1, call: at + d.some(2)}
		o.back = at + 4
		d.ops = append(d.ops, o)
	}
}

// refusal is a try that failed because the lock was held.
func (d *sketcher) refusal() {
	t := d.r.IntN(20)
	o := sketch{op: history.OpTry, outcome: history.Fail, busy: true, owner: d.owners, call: t, back: t + d.some(4),
		permits: 1, read: d.kind == search.ReadersWriter && d.once(50)}
	d.owners++
	if d.kind == search.Semaphore {
		o.permits = int32(1 + d.some(int(d.permits)-1))
	}
	d.ops = append(d.ops, o)
}

// corrupt changes one operation. An earlier return of a grant, or a later invocation of a release, makes two holds
// overlap.
func (d *sketcher) corrupt() {
	o := &d.ops[d.r.IntN(len(d.ops))]
	by := 1 + d.some(5)
	switch n := d.r.IntN(10); {
	case o.notice != "" || n == 0 || o.busy:
		o.call, o.back = max(0, o.call+by-3), max(0, o.back+by-3)
	case n == 1 && o.op == history.OpRelease:
		o.outcome = history.OK
	case n == 2:
		o.outcome = history.Info
	case n == 3 && d.kind == search.Semaphore:
		o.permits = int32(1 + d.some(int(d.permits)-1))
	case o.op == history.OpRelease:
		o.call += by
		o.back = max(o.call, o.back+d.some(by))
	default:
		o.back = max(0, o.back-by)
		o.call = min(o.call, o.back)
	}
}

// build makes spans and notices of the sketches, in the order of their events.
func (d *sketcher) build() {
	d.marks = d.marks[:0]
	for i := range d.ops {
		o := &d.ops[i]
		o.back = max(o.back, o.call)
		d.marks = append(d.marks, sketchMark{at: o.call, op: i})
		if o.notice == "" {
			d.marks = append(d.marks, sketchMark{at: o.back, op: i, back: true})
		}
	}
	slices.SortStableFunc(d.marks, func(a, b sketchMark) int { return a.at - b.at })
	h := &d.h
	h.Spans, h.Notices, h.Owners = h.Spans[:0], h.Notices[:0], h.Owners[:0]
	h.Events, h.End = len(d.marks), time.Duration(d.marks[len(d.marks)-1].at)
	for range d.owners {
		h.Owners = append(h.Owners, "o")
	}
	d.span = slices.Grow(d.span[:0], len(d.ops))[:len(d.ops)]
	token := uint64(0)
	for n, m := range d.marks {
		o, t := &d.ops[m.op], time.Duration(m.at)
		switch {
		case o.notice != "":
			h.Notices = append(h.Notices, history.Notice{Time: t, Index: int32(n), Process: history.Process(o.owner),
				Owner: o.owner, F: o.notice})
		case m.back:
			s := &h.Spans[d.span[m.op]]
			if s.Ended = int32(n); s.Outcome != history.Info {
				s.Return = t
			}
			if d.kind.Fenced() && s.Outcome == history.OK && s.Op != history.OpRelease {
				token = d.setToken(s, token)
			}
			if d.rich {
				token = d.setReply(s, token)
			}
		default:
			d.span[m.op] = int32(len(h.Spans))
			h.Spans = append(h.Spans, history.Span{Call: t, Return: segment.Never, Invoked: int32(n), Ended: -1, Owner: o.owner,
				Process: history.Process(o.owner), Permits: o.permits, Lease: time.Duration(o.lease),
				Op: o.op, Outcome: o.outcome, Write: !o.read, Busy: o.busy, Held: o.leftHeld && o.outcome == history.Fail})
		}
	}
}

// setToken gives a grant its token: the next one, or its hold's; and sometimes a wrong one, or none.
func (d *sketcher) setToken(s *history.Span, last uint64) uint64 {
	depth, token := 0, uint64(0)
	for i := range d.h.Spans {
		switch p := &d.h.Spans[i]; {
		case p == s || p.Owner != s.Owner || p.Outcome != history.OK || p.Ended < 0:
		case p.Op == history.OpRelease:
			depth--
		default:
			depth++
			token = p.Token
		}
	}
	if s.Token = token; depth <= 0 {
		last++
		s.Token = last
	}
	switch n := d.r.IntN(100); {
	case n < 4:
		s.Token = 0
	case n < 8:
		s.Token = max(1, s.Token-1)
	case n < 10:
		s.Token++
	}
	return last
}
