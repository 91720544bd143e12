package engine

import (
	"math"
	"math/big"
	"slices"
	"time"
)

// signalReady records that a key has elements that a blocked connection may wait for.
func (s *Server) signalReady(db int, key []byte, o *object) {
	if len(s.waiting) == 0 || o.kind != kindList && o.kind != kindZSet {
		return
	}
	p := dbKey{db, string(key)}
	if len(s.waiting[p]) > 0 {
		s.ready = append(s.ready, p)
	}
}

// serveReady serves the connections that are blocked on keys with new elements, in the
// order in which they blocked, each as an execution unit of its own.
func (s *Server) serveReady() {
	for len(s.ready) > 0 {
		p := s.ready[0]
		s.ready = s.ready[1:]
		for _, c := range append([]*Conn{}, s.waiting[p]...) {
			if c.wait == nil || c.wait.serve == nil || c.db != p.db {
				continue
			}
			before := s.dirty
			s.instead, s.verbatim = nil, true
			if !c.wait.serve([]byte(p.key)) {
				continue
			}
			if s.dirty != before {
				for _, cmd := range s.instead {
					s.propagate(p.db, cmd)
				}
			}
			s.instead, s.verbatim = nil, true
			c.Unblock()
			s.flushEffects()
		}
	}
}

// serveFirst calls take for the first key that holds a value of kind k. If there is
// none it replies with null, or blocks the connection until there is one.
func (c *Conn) serveFirst(keys [][]byte, k kind, w blockWait, take func(key []byte, o *object)) {
	serve := func(key []byte) bool {
		o := c.s.find(c.db, view(key))
		if o == nil || o.kind != k {
			return false
		}
		take(key, o)
		return true
	}
	for _, key := range keys {
		if c.findKind(key, k) != nil && serve(key) {
			return
		}
	}
	if !w.block {
		w.null()
		return
	}
	c.blockOn(keys, w.until, w.null, serve)
}

// blockWait is how a blocking command waits, if at all, and its reply after a timeout.
type blockWait struct {
	until time.Time
	block bool
	null  func()
}

// blockOn blocks the connection until serve can reply from one of the keys, or until a
// timeout.
func (c *Conn) blockOn(keys [][]byte, until time.Time, timeout func(), serve func(key []byte) bool) {
	c.Block(until, timeout)
	c.wait.serve = serve
	for _, key := range keys {
		p := dbKey{c.db, string(key)}
		if !slices.Contains(c.wait.keys, p) {
			c.wait.keys = append(c.wait.keys, p)
			c.s.waiting[p] = append(c.s.waiting[p], c)
		}
	}
}

// timeout parses how long to wait, in seconds with a fraction (zero: forever).
func (c *Conn) timeout(b []byte) time.Time {
	f := c.extended(b, "ERR timeout is not a float or out of range")
	ms := 0.0
	if f.IsInf() {
		ms = math.Inf(1)
	} else {
		ms, _ = f.Mul(f, big.NewFloat(1000)).Float64()
	}
	now := c.s.cfg.Now()
	switch {
	case ms <= -1 || ms >= math.MaxInt64: // becomes negative as an integer
		c.Fail("ERR timeout is negative")
	case math.Ceil(ms) > float64(math.MaxInt64-now.UnixMilli()):
		c.Fail("ERR timeout is out of range")
	case math.Ceil(ms) <= 0 || ms > float64(math.MaxInt64/time.Millisecond): // the latter is 292 years
		return time.Time{}
	}
	return now.Add(time.Duration(math.Ceil(ms)) * time.Millisecond)
}
