package lock

import (
	crand "crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// random is the client's source of ids and random delays; several goroutines may use it.
type random struct {
	mu     sync.Mutex
	source rand.Source
	client string // random part of every id
	last   atomic.Uint64
}

func newRandom(source rand.Source) *random {
	if source == nil {
		var seed [32]byte
		_, _ = crand.Read(seed[:]) // never fails; see crypto/rand
		source = rand.NewChaCha8(seed)
	}
	r := &random{source: source}
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], source.Uint64())
	binary.LittleEndian.PutUint32(b[8:], uint32(source.Uint64()))
	r.client = base64.RawURLEncoding.EncodeToString(b[:])
	return r
}

// split is a source for the n-th user of a name. It does not depend on what other goroutines draw.
func (r *random) split(name string, n int) *random {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.client + name)) // never fails
	return &random{source: rand.NewPCG(h.Sum64(), uint64(n))}
}

// id is different from every id of this client and, except with a probability of 2^-96, of any other.
func (r *random) id() string { return r.value()[len("h:"):] }

// value is "h:" and an id, as the value of a lock that is a string.
func (r *random) value() string {
	var b [64]byte
	return string(strconv.AppendUint(append(append(append(b[:0], "h:"...), r.client...), '-'), r.last.Add(1), 36))
}

// uuid is a random UUID (version 4).
func (r *random) uuid() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], r.source.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.source.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// between is a duration of at least low and less than high.
func (r *random) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return low + time.Duration(r.source.Uint64()%uint64(high-low))
}
