package checker

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
)

// shape is a history for which a naive checker takes quadratic time.
type shape struct {
	name string
	make func(n int) *history.History
}

// shapes are made of n operations each.
func shapes() []shape {
	return []shape{
		{"readers", manyReaders},
		{"readers-and-writers", readersAndWriters},
		{"renewals", manyRenewals},
		{"lapses", manyLapses},
		{"keys", manyKeys},
		{"crashes", manyCrashes},
		{"permits", manyPermits},
		{"permits-of-one-owner", permitsOfOne},
		{"permits-in-parts", permitsInParts},
		{"permits-and-crashes", permitsLost},
	}
}

// sequence is a history that is made one operation after the other.
type sequence struct {
	h     history.History
	event int32
	now   time.Duration
}

func newStrip(keys, owners int) *sequence {
	s := &sequence{}
	for k := range keys {
		s.h.Keys = append(s.h.Keys, "k"+strconv.Itoa(k))
	}
	s.h.Owners = make([]string, owners)
	return s
}

// add adds an operation of 10 µs.
func (s *sequence) add(op history.Op, owner, key int, set func(*history.Span)) {
	p := history.Span{Op: op, Outcome: history.OK, Owner: int32(owner), Process: history.Process(owner), Key: int32(key),
		Permits: 1, Write: true, Call: s.now, Return: s.now + 10*time.Microsecond, Invoked: s.event, Ended: s.event + 1}
	if set != nil {
		set(&p)
	}
	s.event += 2
	s.now += 20 * time.Microsecond
	s.h.Spans = append(s.h.Spans, p)
}

func (s *sequence) notice(f string, owner, key int) {
	n := history.Notice{Time: s.now, Index: s.event, F: f, Owner: int32(owner), Key: int32(key)}
	n.Process = history.Process(owner)
	s.h.Notices = append(s.h.Notices, n)
	s.event++
	s.now += time.Microsecond
}

func (s *sequence) done() *history.History {
	s.h.End, s.h.Events = s.now, int(s.event)
	return &s.h
}

// manyReaders hold the lock all at once, and release it in the order of their grants.
func manyReaders(n int) *history.History {
	s := newStrip(1, n/2)
	for _, op := range []history.Op{history.OpAcquire, history.OpRelease} {
		for i := range n / 2 {
			s.add(op, i, 0, func(p *history.Span) { p.Write = false })
		}
	}
	return s.done()
}

// readersAndWriters: writers in turn, a hundred readers after each.
func readersAndWriters(n int) *history.History {
	s := newStrip(1, n/2+1)
	for i := 0; i < n/2; i += 100 {
		for _, op := range []history.Op{history.OpAcquire, history.OpRelease} {
			for j := range 99 {
				s.add(op, i+j, 0, func(p *history.Span) { p.Write = false })
			}
		}
		s.add(history.OpAcquire, i+99, 0, nil)
		s.add(history.OpRelease, i+99, 0, nil)
	}
	return s.done()
}

// manyRenewals: one owner holds the lock again and again, with two renewals each time.
func manyRenewals(n int) *history.History {
	s := newStrip(1, 1)
	for range n / 4 {
		for _, op := range []history.Op{history.OpAcquire, history.OpRenew, history.OpRenew, history.OpRelease} {
			s.add(op, 0, 0, func(p *history.Span) { p.Lease = time.Second })
		}
	}
	return s.done()
}

// manyLapses: two owners hold a key each, and always renew too late.
func manyLapses(n int) *history.History {
	s := newStrip(1, 2)
	late := func(p *history.Span) { p.Lease, p.Valid = time.Microsecond, p.Return+time.Microsecond }
	s.add(history.OpAcquire, 0, 0, late)
	s.add(history.OpAcquire, 1, 0, late)
	for i := range n - 4 {
		s.add(history.OpRenew, i%2, 0, late)
	}
	s.add(history.OpRelease, 0, 0, nil)
	s.add(history.OpRelease, 1, 0, nil)
	return s.done()
}

// manyKeys: one owner holds all of them at once.
func manyKeys(n int) *history.History {
	s := newStrip(n/2, 1)
	for i := range n / 2 {
		s.add(history.OpAcquire, 0, i, func(p *history.Span) { p.Count = 1 })
	}
	for i := range n / 2 {
		s.add(history.OpRelease, 0, i, nil)
	}
	return s.done()
}

// manyCrashes: each owner acquires the lock and crashes.
func manyCrashes(n int) *history.History {
	s := newStrip(1, n)
	for i := range n {
		s.add(history.OpAcquire, i, 0, func(p *history.Span) { p.Lease = 10 * time.Microsecond })
		s.notice(history.Crash, i, 0)
	}
	return s.done()
}

// manyPermits: all of them are held at once.
func manyPermits(n int) *history.History {
	s := newStrip(1, n/2)
	s.h.Limits = []int32{int32(n / 2)}
	for _, op := range []history.Op{history.OpAcquire, history.OpRelease} {
		for i := range n / 2 {
			s.add(op, i, 0, nil)
		}
	}
	return s.done()
}

// permitsOfOne: one owner acquires one after the other, and releases them.
func permitsOfOne(n int) *history.History {
	s := newStrip(1, 1)
	s.h.Limits = []int32{int32(n / 2)}
	for _, op := range []history.Op{history.OpAcquire, history.OpRelease} {
		for range n / 2 {
			s.add(op, 0, 0, nil)
		}
	}
	return s.done()
}

// permitsInParts: acquired together, and released one by one.
func permitsInParts(n int) *history.History {
	s := newStrip(1, 1)
	s.h.Limits = []int32{int32(n - 1)}
	s.add(history.OpAcquire, 0, 0, func(p *history.Span) { p.Permits = int32(n - 1) })
	for range n - 1 {
		s.add(history.OpRelease, 0, 0, nil)
	}
	return s.done()
}

// permitsLost: each owner acquires one and crashes.
func permitsLost(n int) *history.History {
	s := newStrip(1, n)
	s.h.Limits = []int32{int32(n)}
	for i := range n {
		s.add(history.OpAcquire, i, 0, func(p *history.Span) { p.Lease = time.Second })
		s.notice(history.Crash, i, 0)
	}
	return s.done()
}

// TestShapes judges each shape, so that the benchmark is known to measure something.
func TestShapes(t *testing.T) {
	for _, shape := range shapes() {
		j := Judge(shape.make(2000), property.Options{Search: -1})
		for _, r := range j.Results {
			if shape.name != "lapses" && (r.Outcome == property.Violated || r.Outcome == property.Undecided &&
				r.Property != property.Exercised) {
				t.Errorf("%s: %s is %s: %s", shape.name, r.Property, r.Outcome, r.Summary)
			}
		}
	}
}

// BenchmarkShapes judges each shape by every property except for the search, which is bounded by itself. Ten times as
// many operations take little more than ten times as long.
func BenchmarkShapes(b *testing.B) {
	for _, shape := range shapes() {
		for _, n := range []int{10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%dk", shape.name, n/1000), func(b *testing.B) {
				h := shape.make(n)
				for b.Loop() {
					if j := Judge(h, property.Options{Search: -1}); len(j.Results) == 0 {
						b.Fatal(j.Sentence)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(n)*1e9, "ns/operation")
			})
		}
	}
}

// TestProgress follows a judgement to its end.
func TestProgress(t *testing.T) {
	p := new(property.Progress)
	if done, total := p.Done(); done != 0 || total != 0 || p.Doing() != "" {
		t.Errorf("before it has begun: %d of %d, %q", done, total, p.Doing())
	}
	h := manyRenewals(400)
	seen := ""
	p.Begin(1)
	p.Step("a", 1, func() { p.Step("b", 0, func() { seen = p.Doing() }) })
	if done, _ := p.Done(); seen != "a, b" || done != 1 || p.Doing() != "" {
		t.Errorf("two steps: %d, %q, afterwards %q", done, seen, p.Doing())
	}
	Judge(h, property.Options{Progress: p})
	want := int64(len(Catalog())+1) * int64(len(h.Spans))
	if done, total := p.Done(); done != want || total != want || p.Doing() != "" {
		t.Errorf("at the end: %d of %d, want %d, %q", done, total, want, p.Doing())
	}
}
