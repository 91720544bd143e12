package engine

import "slices"

// transaction is what stands between MULTI and EXEC.
type transaction struct {
	cmds    []queued
	flags   Flags // of all of them
	spoiled bool  // one of them was refused
	running bool
}

type queued struct {
	spec *Spec
	args [][]byte
}

// watch is a watched key; one that was over already when it was watched may go.
type watch struct {
	place
	over bool
}

func cmdMulti(c *Conn, _ [][]byte) {
	if c.multi != nil {
		c.WriteError("ERR MULTI calls can not be nested")
		return
	}
	c.multi = &transaction{}
	c.writeOK()
}

func cmdDiscard(c *Conn, _ [][]byte) {
	if c.multi == nil {
		c.WriteError("ERR DISCARD without MULTI")
		return
	}
	c.discard()
	c.writeOK()
}

func (c *Conn) discard() {
	c.multi = nil
	c.unwatch()
}

func cmdExec(c *Conn, _ [][]byte) {
	if c.multi == nil {
		c.WriteError("ERR EXEC without MULTI")
		return
	}
	spoiled, stale := c.multi.spoiled, c.stale()
	if spoiled || stale {
		c.discard()
		if spoiled {
			c.WriteError("EXECABORT Transaction discarded because of previous errors.")
		} else {
			c.WriteNullArray()
		}
		return
	}
	c.unwatch()
	m := c.multi
	m.running = true
	c.WriteArray(len(m.cmds))
	for _, q := range m.cmds {
		c.s.call(c, q.spec, q.args)
	}
	c.multi = nil
}

func cmdWatch(c *Conn, args [][]byte) {
	if c.multi != nil {
		c.WriteError("ERR WATCH inside MULTI is not allowed")
		return
	}
	c.writeOK()
	if c.dirtyCAS {
		return
	}
	for _, key := range args[1:] {
		p := place{c.db, string(key)}
		if slices.ContainsFunc(c.watches, func(w watch) bool { return w.place == p }) {
			continue
		}
		o, ok := c.s.dbs[c.db].keys.get(p.key)
		c.watches = append(c.watches, watch{p, ok && c.s.expired(o)})
		c.s.watching[p] = append(c.s.watching[p], c)
	}
}

func cmdUnwatch(c *Conn, _ [][]byte) {
	c.unwatch()
	c.writeOK()
}

func (c *Conn) unwatch() {
	for _, w := range c.watches {
		rest := slices.DeleteFunc(c.s.watching[w.place], func(o *Conn) bool { return o == c })
		if len(rest) == 0 {
			delete(c.s.watching, w.place)
		} else {
			c.s.watching[w.place] = rest
		}
	}
	c.watches, c.dirtyCAS = nil, false
}

// stale says whether a watched key was changed, or has run out since.
func (c *Conn) stale() bool {
	for _, w := range c.watches {
		if o, ok := c.s.dbs[w.db].keys.get(w.key); ok && !w.over && c.s.expired(o) {
			return true
		}
	}
	return c.dirtyCAS
}

// touch tells those who watch a key that it has changed.
func (s *Server) touch(db int, key string) {
	if len(s.watching) == 0 {
		return
	}
	for _, c := range s.watching[place{db, key}] {
		c.dirtyCAS = true
	}
}

// touchExpired is touch for a key that is being removed because it is over, or
// with all others; whoever watched it when it was over already is not told.
func (s *Server) touchExpired(db int, key string) {
	if len(s.watching) == 0 {
		return
	}
	p := place{db, key}
	for _, c := range s.watching[p] {
		for i, w := range c.watches {
			if w.place != p {
				continue
			}
			if !w.over {
				c.dirtyCAS = true
			}
			c.watches[i].over = false
		}
	}
}
