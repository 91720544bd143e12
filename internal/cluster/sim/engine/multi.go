package engine

import "slices"

// transaction is the commands between MULTI and EXEC.
type transaction struct {
	cmds    []queued
	flags   Flags // of all commands
	failed  bool  // a command was rejected
	running bool
}

type queued struct {
	spec *Spec
	args [][]byte
}

// watch is a watched key; a key that had already expired when it was watched may be removed.
type watch struct {
	dbKey
	over bool
}

func cmdMulti(c *Conn, _ [][]byte) {
	c.FailIf(c.multi != nil, "ERR MULTI calls can not be nested")
	c.multi = &transaction{}
	c.writeOK()
}

func cmdDiscard(c *Conn, _ [][]byte) {
	c.FailIf(c.multi == nil, "ERR DISCARD without MULTI")
	c.discard()
	c.writeOK()
}

func (c *Conn) discard() {
	c.multi = nil
	c.unwatch()
}

func cmdExec(c *Conn, _ [][]byte) {
	c.FailIf(c.multi == nil, "ERR EXEC without MULTI")
	spoiled, stale := c.multi.failed, c.stale()
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
		if bad := c.s.unpermittedInExec(q); bad != "" {
			c.WriteError(bad)
			continue
		}
		c.s.call(c, q.spec, q.args)
	}
	c.multi = nil
}

func cmdWatch(c *Conn, args [][]byte) {
	c.FailIf(c.multi != nil, "ERR WATCH inside MULTI is not allowed")
	c.writeOK()
	if c.dirtyCAS {
		return
	}
	for _, key := range args[1:] {
		p := dbKey{c.db, string(key)}
		if slices.ContainsFunc(c.watches, func(w watch) bool { return w.dbKey == p }) {
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
		c.dropFrom(c.s.watching, w.dbKey)
	}
	c.watches, c.dirtyCAS = nil, false
}

// dropFrom removes the connection from the ones that wait for, or watch, a key.
func (c *Conn) dropFrom(all map[dbKey][]*Conn, key dbKey) {
	all[key] = slices.DeleteFunc(all[key], func(o *Conn) bool { return o == c })
	if len(all[key]) == 0 {
		delete(all, key)
	}
}

// stale reports whether a watched key has changed or expired.
func (c *Conn) stale() bool {
	for _, w := range c.watches {
		if o, ok := c.s.dbs[w.db].keys.get(w.key); ok && !w.over && c.s.expired(o) {
			return true
		}
	}
	return c.dirtyCAS
}

// touch marks the connections that watch a key.
func (s *Server) touch(db int, key string) {
	if len(s.watching) == 0 {
		return
	}
	for _, c := range s.watching[dbKey{db, key}] {
		c.dirtyCAS = true
	}
}

// touchExpired is touch for a key that is removed because it has expired, or by a flush;
// connections that watched it after its expiry are not marked.
func (s *Server) touchExpired(db int, key string) {
	if len(s.watching) == 0 {
		return
	}
	p := dbKey{db, key}
	for _, c := range s.watching[p] {
		for i, w := range c.watches {
			if w.dbKey != p {
				continue
			}
			if !w.over {
				c.dirtyCAS = true
			}
			c.watches[i].over = false
		}
	}
}
