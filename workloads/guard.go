package workloads

import (
	"sync"

	"github.com/lockchaos/lockchaos/history"
)

// Guard is the resource that the lock is there for: a counter for each key.
// It lives in the harness, so that what it saw is beyond doubt. A client reads
// the counter when it enters its critical section and writes one more when it
// leaves; a counter that has moved meanwhile is a lost update, the harm that a
// lock is bought to prevent (jepsen-io/etcd's lock-set workload has the idea).
// Several goroutines may use it.
type Guard struct {
	fenced bool

	mu       sync.Mutex
	counters map[string]*counter
}

type counter struct {
	value   int64
	maxSeen uint64
}

// NewGuard is a guard with every counter at zero. A fenced guard refuses a
// write whose token is older than one that it has seen (Kleppmann 2016).
func NewGuard(fenced bool) *Guard {
	return &Guard{fenced: fenced, counters: map[string]*counter{}}
}

// Read is the counter of key now.
func (g *Guard) Read(key string) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of(key).value
}

// Write sets the counter of key to read+1 on behalf of a holder with that
// token (0: the lock mints none), and says what it found and whether it took
// the write. record is called before anybody else can write, so that the
// history has the writes in the order in which they arrived.
func (g *Guard) Write(key string, read int64, token uint64, record func(v history.TouchValue, accepted bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.of(key)
	v := history.TouchValue{Read: read, Found: c.value, MaxSeen: c.maxSeen, Fenced: g.fenced}
	accepted := !g.fenced || token >= c.maxSeen
	if accepted {
		c.value = read + 1
	}
	c.maxSeen = max(c.maxSeen, token)
	record(v, accepted)
}

func (g *Guard) of(key string) *counter {
	c := g.counters[key]
	if c == nil {
		c = &counter{}
		g.counters[key] = c
	}
	return c
}
