package checker

import (
	"encoding/binary"
	"fmt"
)

// crowd is a lock that several may hold at once: a semaphore or a readers-writer
// lock. It is comparable, because a search asks all the time whether it has been here.
type crowd struct {
	in      string // the holders, see member
	out     int32  // permits out, or holders and their re-entries
	writers int32  // of the holders
	ended   bool   // as in mutexState
}

// member is one holder, 21 bytes of crowd.in, which are in the order of self.
type member struct {
	self  int64
	has   int32 // permits, or depth
	pos   int32
	vague int32 // of has: from acquires of unknown outcome with a lease; but see take
	write bool
}

const memberSize = 21

func (c crowd) member(i int) (m member) {
	b := []byte(c.in[i : i+memberSize])
	m.self = int64(binary.BigEndian.Uint64(b))
	m.has = int32(binary.BigEndian.Uint32(b[8:]))
	m.pos = int32(binary.BigEndian.Uint32(b[12:]))
	m.vague = int32(binary.BigEndian.Uint32(b[16:]))
	m.write = b[20] == 1
	return m
}

// find is where self is in c.in, or belongs.
func (c crowd) find(self int64) (at int, m member, found bool) {
	for at < len(c.in) {
		switch m = c.member(at); {
		case m.self == self:
			return at, m, true
		case m.self > self:
			return at, member{}, false
		}
		at += memberSize
	}
	return at, member{}, false
}

// put replaces old bytes of c.in at a place by m, or by nothing if m has nothing.
func (c crowd) put(at, old int, m member) crowd {
	b := make([]byte, 0, 128)
	b = append(b, c.in[:at]...)
	if m.has > 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(m.self))
		b = binary.BigEndian.AppendUint32(b, uint32(m.has))
		b = binary.BigEndian.AppendUint32(b, uint32(m.pos))
		b = binary.BigEndian.AppendUint32(b, uint32(m.vague))
		if m.write {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	c.in = string(append(b, c.in[at+old:]...))
	return c
}

// step says whether op is legal in c, and what c becomes.
func (c crowd) step(op *lockOp, kind lockKind, permits int32) (bool, crowd) {
	switch {
	case op.kind == end:
		c.ended = true
		return true, c
	case op.unknown && c.ended:
		return true, c
	case op.kind == busy:
		return !c.admits(op, kind, permits, false), c
	}
	at, m, mine := c.find(op.self())
	old := 0
	if mine {
		old = memberSize
	}
	if mine && !op.follows(m.pos) || (op.depth >= 0 && op.depth != int64(m.has)) {
		return false, c
	}
	n := op.permits
	switch op.kind {
	case take:
		if !c.admits(op, kind, permits, mine) {
			return false, c
		}
		if !mine && op.write {
			c.writers++
		}
		m.self, m.write = op.self(), op.write
		m.take(op, kind)
	case give:
		if !mine || m.has < n {
			return false, c
		}
		n = -n
		m.vague = min(m.vague, m.has+n)
	case drop:
		if !mine {
			return false, c
		}
		n = -m.has
	case lapse:
		if !mine || m.vague < n {
			return false, c
		}
		m.vague -= n
		if n = -n; kind != semaphore {
			n = -m.has
		}
	}
	m.has += n
	c.out += n
	if m.pos = op.at(m.pos); !mine {
		m.pos = op.first()
	}
	if m.has == 0 && m.write {
		c.writers--
	}
	return true, c.put(at, old, m)
}

// take notes what may run out. Of a semaphore every acquire has a lease of its own;
// else a certain acquire makes the whole hold certain.
func (m *member) take(op *lockOp, kind lockKind) {
	switch {
	case kind == semaphore && op.leased:
		m.vague += op.permits
	case kind == semaphore:
	case m.has == 0 && op.leased:
		m.vague = 1
	case !op.leased:
		m.vague = 0
	}
}

// admits says whether there is room for op. Who is in already as a reader or as
// a writer may come again as the same.
func (c crowd) admits(op *lockOp, kind lockKind, permits int32, mine bool) bool {
	switch {
	case kind == semaphore:
		return int64(c.out)+int64(op.permits) <= int64(permits)
	case mine:
		return true
	case op.write:
		return c.out == 0
	}
	return c.writers == 0
}

func (c crowd) hash() uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(c.in) {
		h = (h ^ uint64(c.in[i])) * 1099511628211
	}
	if c.ended {
		h = ^h
	}
	return h
}

func (c crowd) String() string {
	switch {
	case c.out == 0:
		return "free"
	case c.writers > 0:
		return fmt.Sprintf("a writer, depth %d", c.out)
	}
	return fmt.Sprintf("%d out, %d holders", c.out, len(c.in)/memberSize)
}
