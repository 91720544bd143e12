package engine

import "time"

// Key is a key in [Server.Keys].
type Key struct {
	DB   int
	Name string
	Type string        // of TYPE
	TTL  time.Duration // zero: no expiry
}

// Keys are the keys of all databases as seen by a client, in order of insertion.
func (s *Server) Keys() []Key {
	s.enter()
	defer s.leave()
	var all []Key
	for _, db := range s.dbs {
		for name, o := range db.keys.all() {
			if s.expired(o) {
				continue
			}
			k := Key{DB: db.id, Name: name, Type: o.kind.String()}
			if o.expires != never {
				k.TTL = max(time.Duration(o.expires-s.ms)*time.Millisecond, 1)
			}
			all = append(all, k)
		}
	}
	return all
}

// Connections is the number of connected clients.
func (s *Server) Connections() int { return len(s.conns) }

// Query executes a command outside of any connection, without Guard, and returns the
// raw reply in RESP2; for samples of the server's state. It must not write.
func (s *Server) Query(args ...string) []byte {
	s.enter()
	defer s.leave()
	list := make([][]byte, len(args))
	for i, a := range args {
		list[i] = []byte(a)
	}
	c := &Conn{s: s, resp: 2, script: true}
	spec, bad := s.lookup(list)
	if bad != "" || !spec.has(ReadOnly) {
		if bad == "" {
			bad = "ERR not a command that only reads"
		}
		c.WriteError(bad)
		return c.out
	}
	s.call(c, spec, list)
	return c.out
}
