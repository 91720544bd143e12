package session

import (
	"sync"

	"github.com/lockchaos/lockchaos/history"
)

// Guard is the resource that the lock protects: a counter for each key, in the harness, so that its observations are
// certain. A client reads the counter when it enters its critical section and writes it, plus one, when it leaves; if
// the counter has changed meanwhile, an update is lost (after jepsen-io/etcd's lock-set workload). Several goroutines
// may use it.
type Guard struct {
	fenced bool

	mu       sync.Mutex
	counters map[string]*counter
}

type counter struct {
	value   int64
	maxSeen uint64
}

// NewGuard is a guard with all counters at zero. A fenced guard rejects a write with a token older than the newest it
// has seen (Kleppmann 2016).
func NewGuard(fenced bool) *Guard {
	return &Guard{fenced: fenced, counters: map[string]*counter{}}
}

// Read is the counter of key.
func (g *Guard) Read(key string) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counter(key).value
}

// Write sets the counter of key to read+1 for a holder with that token (0: none). record is called before the next
// write, so that the history has all writes in order.
func (g *Guard) Write(key string, read int64, token uint64, record func(v history.TouchValue, accepted bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.counter(key)
	v := history.TouchValue{Read: read, Found: c.value, MaxSeen: c.maxSeen, Fenced: g.fenced}
	accepted := !g.fenced || token >= c.maxSeen
	if accepted {
		c.value = read + 1
	}
	c.maxSeen = max(c.maxSeen, token)
	record(v, accepted)
}

func (g *Guard) counter(key string) *counter {
	c := g.counters[key]
	if c == nil {
		c = &counter{}
		g.counters[key] = c
	}
	return c
}

// Touch writes to the guarded resource for the holder of h, which has read the counter as read.
func (s *Session) Touch(h Hold, g *Guard, read int64) {
	if s.noteEnded(); s.valid.isOver(h) {
		return
	}
	p := s.Process()
	g.Write(h.Key, read, h.Token, func(v history.TouchValue, accepted bool) {
		s.record.Touch(p, h.Key, &history.Value{Owner: h.Owner, Token: h.Token, Touch: &v}, accepted)
	})
}
