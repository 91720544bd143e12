package checker

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// justInTime is a third search, for small histories. It shares nothing with the sweep and with porcupine: it has no
// holds, drops no operation of unknown outcome, needs no horizon, and uses Lowe's just-in-time linearization: it goes
// through the events, keeps the set of all possible states, and lets pending operations take effect only when one
// returns.
type justInTime struct {
	kind    search.Kind
	permits int8
	spans   []history.Span
	before  []int32 // the owner's last known operation before it; or -1
	done    uint64  // operations that have returned
	called  uint64
	lapses  []int32 // spans of unknown outcome with a lease, whose end is operation len(spans)+n
	marks   []jitMark
	now     []jitCase
}

type jitMark struct {
	at   int64
	back bool
	span int32
}

// jitCase is a possible state: which pending operations have taken effect.
type jitCase struct {
	taken     uint64
	has       [16]int8
	tokens    [16]uint8
	mayExpire [16]int8 // the part of has that may expire; of semaphores only if that is all
	out       int8
	writers   int8
	highest   uint8
}

// legal reports whether h has a legal order. It has at most 64 operations and 16 owners.
func (j *justInTime) legal(h *history.History, kind search.Kind, permits int32) bool {
	j.kind, j.permits, j.spans = kind, int8(permits), h.Spans
	j.before, j.marks, j.done, j.called = j.before[:0], j.marks[:0], 0, 0
	j.lapses = j.lapses[:0]
	for i := range h.Spans {
		s := &h.Spans[i]
		before := int32(-1)
		for n := i - 1; n >= 0; n-- {
			if p := &h.Spans[n]; p.Owner == s.Owner && p.Outcome == history.OK {
				before = int32(n)
				break
			}
		}
		j.before = append(j.before, before)
		if s.Outcome == history.Info && s.Op != history.OpRelease && (s.Lease > 0 || j.kind == search.Semaphore) {
			j.lapses = append(j.lapses, int32(i))
		}
		if s.Outcome == history.Fail && !s.Busy {
			continue
		}
		j.marks = append(j.marks, jitMark{int64(s.Call), false, int32(i)})
		if s.Outcome != history.Info {
			j.marks = append(j.marks, jitMark{int64(s.Return), true, int32(i)})
		}
	}
	slices.SortStableFunc(j.marks, func(a, b jitMark) int {
		switch {
		case a.at != b.at:
			return int(a.at - b.at)
		case a.back == b.back:
			return 0
		case a.back:
			return 1
		}
		return -1
	})
	j.now = append(j.now[:0], jitCase{})
	for _, m := range j.marks {
		bit := uint64(1) << m.span
		if !m.back {
			j.called |= bit
			if n := slices.Index(j.lapses, m.span); n >= 0 {
				j.called |= 1 << (len(j.spans) + n)
			}
			continue
		}
		if j.returned(bit); len(j.now) == 0 {
			return false
		}
	}
	return true
}

// returned keeps the states in which an operation has taken effect, with pending ones taking effect in every order.
func (j *justInTime) returned(bit uint64) {
	for n := 0; n < len(j.now); n++ {
		if j.now[n].taken&bit != 0 {
			continue
		}
		for i := range len(j.spans) + len(j.lapses) {
			next := j.now[n]
			if j.effect(&next, int32(i)) && !slices.Contains(j.now, next) {
				j.now = append(j.now, next)
			}
		}
	}
	j.done |= bit
	kept := j.now[:0]
	for _, c := range j.now {
		if c.taken&bit != 0 {
			c.taken &^= bit
			if !slices.Contains(kept, c) {
				kept = append(kept, c)
			}
		}
	}
	j.now = kept
}

// effect lets operation i take effect, if it may.
func (j *justInTime) effect(c *jitCase, i int32) bool {
	bit := uint64(1) << i
	if j.called&bit == 0 || (j.done|c.taken)&bit != 0 {
		return false
	}
	if n := int(i) - len(j.spans); n >= 0 {
		c.taken |= bit
		return j.leaseEnd(c, &j.spans[j.lapses[n]])
	}
	s := &j.spans[i]
	if b := j.before[i]; !s.Busy && b >= 0 && (j.done|c.taken)&(uint64(1)<<b) == 0 {
		return false
	}
	c.taken |= bit
	n := int8(1)
	if j.kind == search.Semaphore {
		n = int8(s.Permits)
	}
	has := &c.has[s.Owner]
	switch {
	case s.Busy:
		return !j.open(c, s, n, false)
	case s.Op == history.OpRelease:
		if *has < n {
			return false
		}
		*has -= n
		c.out -= n
		c.mayExpire[s.Owner] = min(c.mayExpire[s.Owner], *has)
		if *has == 0 {
			c.writers = 0
		}
		return true
	}
	if !j.open(c, s, n, *has > 0) || !j.rightToken(c, s, *has > 0) {
		return false
	}
	if c.out += n; s.Write && j.kind == search.ReadersWriter {
		c.writers = 1
	}
	leased := s.Outcome == history.Info && (s.Lease > 0 || j.kind == search.Semaphore)
	switch vague := &c.mayExpire[s.Owner]; {
	case leased && (*vague == *has || j.kind == search.Semaphore):
		*vague += n
	case j.kind != search.Semaphore:
		*vague = 0
	}
	*has += n
	return true
}

// leaseEnd ends the lease of an acquire of unknown outcome: at a semaphore the lease of its permits, else of the whole
// hold, if no known acquire is part of it.
func (j *justInTime) leaseEnd(c *jitCase, s *history.Span) bool {
	n, vague := int8(s.Permits), &c.mayExpire[s.Owner]
	if j.kind != search.Semaphore {
		n = max(1, c.has[s.Owner])
	}
	if *vague < n {
		return false
	}
	*vague -= n
	c.has[s.Owner] -= n
	if c.out -= n; c.has[s.Owner] == 0 {
		c.writers = 0
	}
	return true
}

// open reports whether there is room for n more of s.
func (j *justInTime) open(c *jitCase, s *history.Span, n int8, inside bool) bool {
	switch j.kind {
	case search.Semaphore:
		return c.out+n <= j.permits
	case search.ReadersWriter:
		return inside || c.out == 0 || (!s.Write && c.writers == 0)
	case search.PlainMutex, search.FencedMutex:
		return c.out == 0
	}
	return c.out == 0 || inside
}

// rightToken reports whether a grant may have its token, and records it.
func (j *justInTime) rightToken(c *jitCase, s *history.Span, inside bool) bool {
	if j.kind != search.FencedMutex && j.kind != search.ReentrantFenced {
		return true
	}
	token, own := uint8(s.Token), &c.tokens[s.Owner]
	if s.Outcome == history.Info || ledger.Promised(s) <= s.Return { // the grant of a slow reply may have expired
		token = 0
	}
	if inside {
		return token == 0 || *own == 0 || token == *own
	}
	if token != 0 && token <= c.highest {
		return false
	}
	*own, c.highest = token, max(c.highest, token)
	return true
}
