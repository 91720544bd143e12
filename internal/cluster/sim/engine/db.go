package engine

import (
	"container/heap"
	"math"
	"slices"
)

type kind uint8

const (
	kindString kind = iota
	kindHash
	kindList
	kindSet
	kindZSet
)

func (k kind) String() string {
	return [...]string{"string", "hash", "list", "set", "zset"}[k]
}

// never is the expiry of a key without one.
const never = math.MinInt64

// object is a value. A string is in str, everything else in val.
type object struct {
	kind    kind
	raw     bool  // a string modified in place, or a collection too large for its compact encoding
	plain   bool  // a string that is not an int for OBJECT ENCODING
	expires int64 // Unix milliseconds, or never
	str     []byte
	val     any // *hash, *list, *set or *zset
}

type database struct {
	id   int
	keys dict[*object]
}

// expiry is a key and its expiry; it is stale, and skipped, if the key has another
// expiry now.
type expiry struct {
	at int64
	dbKey
}

type expiryHeap []expiry

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h expiryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *expiryHeap) Push(x any)        { *h = append(*h, x.(expiry)) }
func (h *expiryHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// expired reports whether o has expired: after its last millisecond, as in Redis.
func (s *Server) expired(o *object) bool {
	return o.expires != never && s.ms > o.expires && !s.applying
}

// peek finds a key without removing it if it has expired.
func (s *Server) peek(db int, key string) *object {
	o, ok := s.dbs[db].keys.get(key)
	if !ok || s.expired(o) {
		return nil
	}
	return o
}

// find finds a key, and removes it if it has expired, except on a replica.
func (s *Server) find(db int, key string) *object {
	o, ok := s.dbs[db].keys.get(key)
	if !ok {
		return nil
	}
	if s.expired(o) {
		if !s.replica {
			s.expire(db, key)
		}
		return nil
	}
	return o
}

// expire removes a key that has expired.
func (s *Server) expire(db int, key string) {
	name := []byte(key)
	s.touchExpired(db, key)
	s.remove(db, key)
	s.stats.expired++
	s.propagate(db, [][]byte{[]byte("DEL"), name})
}

// remove removes a key, and reports whether it existed.
func (s *Server) remove(db int, key string) bool {
	s.version++
	o, ok := s.dbs[db].keys.del(key)
	if ok && o.expires != never {
		s.volatile--
	}
	return ok
}

// store sets key to o. Clients that are blocked on the key are served if it did not
// exist: Redis 7.0 does not serve them when a key is overwritten.
func (s *Server) store(db int, key []byte, o *object) {
	s.version++
	d := s.dbs[db]
	if i := d.keys.find(view(key)); i >= 0 {
		if d.keys.list[i].val.expires != never {
			s.volatile--
		}
		d.keys.list[i].val = o
	} else {
		d.keys.set(view(key), o)
		s.signalReady(db, key, o)
	}
	if at := o.expires; at != never {
		o.expires = never
		s.setExpiry(db, key, o, at)
	}
}

// setExpiry sets when o, which is at key, expires; never: it does not.
func (s *Server) setExpiry(db int, key []byte, o *object, at int64) {
	if o.expires != never {
		s.volatile--
	}
	o.expires = at
	if at == never {
		return
	}
	s.volatile++
	heap.Push(&s.expiries, expiry{at, dbKey{db, string(key)}})
	if len(s.expiries) > 64+4*s.volatile {
		s.expiries = slices.DeleteFunc(s.expiries, func(e expiry) bool { return !s.due(e) })
		heap.Init(&s.expiries)
	}
}

// due reports whether an expiry is not stale.
func (s *Server) due(e expiry) bool {
	o, ok := s.dbs[e.db].keys.get(e.key)
	return ok && o.expires == e.at
}

// nextExpiry is when the next key expires.
func (s *Server) nextExpiry() (int64, bool) {
	for len(s.expiries) > 0 {
		if s.due(s.expiries[0]) {
			return s.expiries[0].at, true
		}
		heap.Pop(&s.expiries)
	}
	return 0, false
}

// expireDue removes all keys that have expired.
func (s *Server) expireDue() {
	for {
		at, ok := s.nextExpiry()
		if !ok || at >= s.ms {
			return
		}
		e := heap.Pop(&s.expiries).(expiry)
		s.expire(e.db, e.key)
		s.flushEffects() // as a unit of its own
	}
}

// find is Server.find in the database of the connection.
func (c *Conn) find(key []byte) *object {
	o := c.s.find(c.db, view(key))
	if o == nil {
		c.s.stats.misses++
	} else {
		c.s.stats.hits++
	}
	return o
}

const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// findKind finds a key that must be of a kind if it exists.
func (c *Conn) findKind(key []byte, k kind) *object {
	o := c.find(key)
	c.FailIf(o != nil && o.kind != k, wrongType)
	return o
}

// text is a string; empty without an object.
func (o *object) text() []byte {
	if o == nil {
		return nil
	}
	return o.str
}

// size is the length of a string or the number of elements of a collection; 0 without an object.
func (o *object) size() int {
	if o == nil {
		return 0
	}
	switch v := o.val.(type) {
	case *hash:
		return v.len()
	case *list:
		return v.len()
	case *set:
		return v.len()
	case *zset:
		return len(v.sorted)
	}
	return len(o.str)
}

func cmdLength(c *Conn, _ [][]byte, o *object) { c.WriteInt(int64(o.size())) }

// on is a command whose first argument is a key: do gets the value there, nil if there is none. If it is of another
// kind, the reply is the error.
func on(k kind, do func(c *Conn, args [][]byte, o *object)) Command {
	return func(c *Conn, args [][]byte) { do(c, args, c.findKind(args[1], k)) }
}

// findRange parses KEY START END after the name of a command and finds the key as [Conn.findKind] does.
func (c *Conn) findRange(args [][]byte, k kind) (start, end int64, o *object) {
	start, end = c.integer(args[2]), c.integer(args[3])
	return start, end, c.findKind(args[1], k)
}

// changed records that key was changed, for watchers and the count of changes.
func (c *Conn) changed(key []byte) {
	c.s.touch(c.db, view(key))
	c.s.dirty++
}

// dropEmpty removes an empty collection.
func (c *Conn) dropEmpty(key []byte, o *object) {
	if o.size() == 0 {
		c.s.remove(c.db, view(key))
	}
}

// removing is a command that removes the elements in its arguments.
func removing(k kind, remove func(o *object, name string) bool) Command {
	return on(k, func(c *Conn, args [][]byte, o *object) {
		n := 0
		for _, name := range args[2:] {
			n += bit(o != nil && remove(o, view(name)))
		}
		if n > 0 {
			c.dropEmpty(args[1], o)
			c.changed(args[1])
		}
		c.WriteInt(int64(n))
	})
}

// storeResult stores a collection at dest, or removes dest if the collection is empty.
func (c *Conn) storeResult(dest []byte, o *object) {
	if n := o.size(); n == 0 {
		c.delete(dest)
	} else {
		c.s.find(c.db, view(dest)) // an expired one is removed first
		c.s.store(c.db, dest, o)
		c.changed(dest)
	}
	c.WriteInt(int64(o.size()))
}
