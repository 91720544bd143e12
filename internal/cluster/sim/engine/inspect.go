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
