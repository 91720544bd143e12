package engine

import "time"

// Exists reports whether database 0 has a key, without touching it. It may be called by a [Command] and by Guard.
func (s *Server) Exists(key string) bool { return s.peek(0, key) != nil }

// TTL is the reply of PTTL for a key of database 0, without touching it.
func (s *Server) TTL(key string) int64 {
	s.enter()
	defer s.leave()
	o := s.peek(0, key)
	switch {
	case o == nil:
		return -2
	case o.expires == never:
		return -1
	}
	return max(o.expires-s.ms, 0)
}

// Version is a number that is another one after every command that may change a key, the configuration or the rights of
// a user, and after a key was removed. If it is the same, every key that exists is as it was; whether a key exists
// depends on the time, too.
func (s *Server) Version() int64 { return s.version }

// KeyNames are the names of the keys of database 0, in order of insertion. It may be called by a [Command].
func (s *Server) KeyNames() (names []string) {
	for name, o := range s.dbs[0].keys.all() {
		if !s.expired(o) {
			names = append(names, name)
		}
	}
	return names
}

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
