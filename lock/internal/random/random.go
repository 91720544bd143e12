// Package random has the ids and the random delays of a lock client.
package random

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

// Source is a source of ids and random delays; several goroutines may use it.
type Source struct {
	mu     sync.Mutex
	source rand.Source
	client string // random part of every id
	last   atomic.Uint64
}

// New is a source that draws from source; nil: from a random seed.
func New(source rand.Source) *Source {
	if source == nil {
		var seed [32]byte
		_, _ = crand.Read(seed[:]) // never fails; see crypto/rand
		source = rand.NewChaCha8(seed)
	}
	r := &Source{source: source}
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], source.Uint64())
	binary.LittleEndian.PutUint32(b[8:], uint32(source.Uint64()))
	r.client = base64.RawURLEncoding.EncodeToString(b[:])
	return r
}

// Split is a source for the n-th user of a name. It does not depend on the draws of other goroutines.
func (r *Source) Split(name string, n int) *Source {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.client + name)) // never fails
	return &Source{source: rand.NewPCG(h.Sum64(), uint64(n))}
}

// ID is different from every id of this client and, except with a probability of 2^-96, of any other.
func (r *Source) ID() string { return r.Value()[len("h:"):] }

// Value is "h:" and an id, as the value of a lock that is a string.
func (r *Source) Value() string {
	var b [64]byte
	return string(strconv.AppendUint(append(append(append(b[:0], "h:"...), r.client...), '-'), r.Number(), 36))
}

// Number is greater than any number before.
func (r *Source) Number() uint64 { return r.last.Add(1) }

// UUID is a random UUID (version 4).
func (r *Source) UUID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], r.source.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.source.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Between is a duration of at least low and less than high.
func (r *Source) Between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return low + time.Duration(r.source.Uint64()%uint64(high-low))
}
