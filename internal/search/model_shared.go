package search

import (
	"encoding/binary"
	"fmt"
)

// sharedState is the state of a lock that several owners may hold at once: a semaphore or a readers-writer lock. It
// is comparable, because a search compares states all the time.
type sharedState struct {
	holders string // sharedHolders, encoded and sorted
	out     int32  // permits held, or holders and their re-entries
	writers int32  // of the holders
	ended   bool   // as in mutexState
}

// sharedHolder is one holder: sharedHolderSize bytes of sharedState.holders, sorted by ownerEpoch.
type sharedHolder struct {
	ownerEpoch int64
	depth      int32 // or permits
	pos        int32
	mayExpire  int32 // of these: from acquires of unknown outcome with a lease; see acquire
	write      bool
}

const sharedHolderSize = 21

func (c sharedState) member(i int) (m sharedHolder) {
	b := []byte(c.holders[i : i+sharedHolderSize])
	m.ownerEpoch = int64(binary.BigEndian.Uint64(b))
	m.depth = int32(binary.BigEndian.Uint32(b[8:]))
	m.pos = int32(binary.BigEndian.Uint32(b[12:]))
	m.mayExpire = int32(binary.BigEndian.Uint32(b[16:]))
	m.write = b[20] == 1
	return m
}

// find is the offset of a holder in c.holders, or the one at which it belongs.
func (c sharedState) find(self int64) (at int, m sharedHolder, found bool) {
	for at < len(c.holders) {
		switch m = c.member(at); {
		case m.ownerEpoch == self:
			return at, m, true
		case m.ownerEpoch > self:
			return at, sharedHolder{}, false
		}
		at += sharedHolderSize
	}
	return at, sharedHolder{}, false
}

// replace replaces old bytes of c.holders at an offset by m, or by nothing if m holds nothing.
func (c sharedState) replace(at, old int, m sharedHolder) sharedState {
	b := make([]byte, 0, 128)
	b = append(b, c.holders[:at]...)
	if m.depth > 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(m.ownerEpoch))
		b = binary.BigEndian.AppendUint32(b, uint32(m.depth))
		b = binary.BigEndian.AppendUint32(b, uint32(m.pos))
		b = binary.BigEndian.AppendUint32(b, uint32(m.mayExpire))
		if m.write {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	c.holders = string(append(b, c.holders[at+old:]...))
	return c
}

// step reports whether op is legal in c, and returns the next state.
func (c sharedState) step(op *Op, kind Kind, permits int32) (bool, sharedState) {
	switch {
	case op.Kind == OpHorizon:
		c.ended = true
		return true, c
	case op.Unknown && c.ended:
		return true, c
	case op.Kind == OpBusyTry:
		return !c.admits(op, kind, permits, false), c
	}
	at, m, mine := c.find(op.OwnerEpoch())
	old := 0
	if mine {
		old = sharedHolderSize
	}
	if mine && !op.follows(m.pos) || (op.Depth >= 0 && op.Depth != int64(m.depth)) {
		return false, c
	}
	n := op.Permits
	switch op.Kind {
	case OpGrant:
		if !c.admits(op, kind, permits, mine) {
			return false, c
		}
		if !mine && op.Write {
			c.writers++
		}
		m.ownerEpoch, m.write = op.OwnerEpoch(), op.Write
		m.acquire(op, kind)
	case OpRelease:
		if !mine || m.depth < n {
			return false, c
		}
		n = -n
		m.mayExpire = min(m.mayExpire, m.depth+n)
	case OpHoldLost:
		if !mine {
			return false, c
		}
		n = -m.depth
	case OpLeaseEnd:
		if !mine || m.mayExpire < n {
			return false, c
		}
		m.mayExpire -= n
		if n = -n; kind != Semaphore {
			n = -m.depth
		}
	}
	m.depth += n
	c.out += n
	if m.pos = op.posAfter(m.pos); !mine {
		m.pos = op.firstPos()
	}
	if m.depth == 0 && m.write {
		c.writers--
	}
	return true, c.replace(at, old, m)
}

// acquire updates mayExpire. In a semaphore every acquire has its own lease; in another lock a known acquire makes the
// whole hold certain.
func (m *sharedHolder) acquire(op *Op, kind Kind) {
	switch {
	case kind == Semaphore && op.Leased:
		m.mayExpire += op.Permits
	case kind == Semaphore:
	case m.depth == 0 && op.Leased:
		m.mayExpire = 1
	case !op.Leased:
		m.mayExpire = 0
	}
}

// admits reports whether there is room for op. A holder may re-enter in its mode.
func (c sharedState) admits(op *Op, kind Kind, permits int32, mine bool) bool {
	switch {
	case kind == Semaphore:
		return int64(c.out)+int64(op.Permits) <= int64(permits)
	case mine:
		return true
	case op.Write:
		return c.out == 0
	}
	return c.writers == 0
}

func (c sharedState) hash() uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(c.holders) {
		h = (h ^ uint64(c.holders[i])) * 1099511628211
	}
	if c.ended {
		h = ^h
	}
	return h
}

func (c sharedState) String() string {
	switch {
	case c.out == 0:
		return "free"
	case c.writers > 0:
		return fmt.Sprintf("a writer, depth %d", c.out)
	}
	return fmt.Sprintf("%d out, %d holders", c.out, len(c.holders)/sharedHolderSize)
}
