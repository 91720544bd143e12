package engine

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
// come first served, each as a unit of its own; it says whether there were any
// such keys.
func (s *Server) serveReady() bool {
	if len(s.ready) == 0 {
		return false
	}
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
	return true
}
