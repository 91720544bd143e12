package engine

import (
	"math"
	"math/big"
	"time"
)

// signalReady notes that a key has got what a blocked connection may wait for.
func (s *Server) signalReady(db int, key []byte, o *object) {
	if len(s.waiting) == 0 || o.kind != kindList && o.kind != kindZSet {
		return
	}
	p := place{db, string(key)}
	if len(s.waiting[p]) > 0 {
		s.ready = append(s.ready, p)
	}
}

// serveReady answers those who are blocked on keys that have got elements, first
// come first served, each as a unit of its own.
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

// blockOn waits until serve can answer from one of the keys, or until it is over.
func (c *Conn) blockOn(keys [][]byte, until time.Time, timeout func(), serve func(key []byte) bool) {
	c.Block(until, timeout)
	c.wait.serve = serve
	for _, key := range keys {
		p := place{c.db, string(key)}
		twice := false
		for _, k := range c.wait.keys {
			twice = twice || k == p
		}
		if !twice {
			c.wait.keys = append(c.wait.keys, p)
			c.s.waiting[p] = append(c.s.waiting[p], c)
		}
	}
}

// timeout reads for how long to wait, in seconds with a fraction; zero: for ever.
// If it is none it writes the error.
func (c *Conn) timeout(b []byte) (time.Time, bool) {
	f, ok := parseExtended(b)
	if !ok {
		c.WriteError("ERR timeout is not a float or out of range")
		return time.Time{}, false
	}
	ms := 0.0
	if f.IsInf() {
		ms = math.Inf(1)
	} else {
		ms, _ = f.Mul(f, big.NewFloat(1000)).Float64()
	}
	now := c.s.cfg.Now()
	switch {
	case ms <= -1 || ms >= math.MaxInt64: // as an integer it is negative then
		c.WriteError("ERR timeout is negative")
		return time.Time{}, false
	case math.Ceil(ms) > float64(math.MaxInt64-now.UnixMilli()):
		c.WriteError("ERR timeout is out of range")
		return time.Time{}, false
	case math.Ceil(ms) <= 0 || ms > float64(math.MaxInt64/time.Millisecond): // the latter is 292 years
		return time.Time{}, true
	}
	return now.Add(time.Duration(math.Ceil(ms)) * time.Millisecond), true
}
