package witness

import (
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/workloads/workload"
)

// fewKeys is up to how many keys a sample reads all of them. Reading ten thousand takes longer than a sample may, and
// would load the servers under test.
const fewKeys = 64

// activeKeys are the keys worth sampling: recently used by clients. The others have not changed since they were sampled
// last.
type activeKeys struct {
	keys   []string
	forget time.Duration // since the last event of a key; longer than a hold without events, and than its lease

	mu   sync.Mutex
	last map[string]time.Duration // time of the last event, by key
}

func newActiveKeys(p workload.Params) *activeKeys {
	return &activeKeys{
		keys: p.KeyNames(), forget: p.Lease + p.Hold + p.Jitter + keepAround, last: map[string]time.Duration{},
	}
}

// add takes an event of key; "" is no key.
func (a *activeKeys) add(key string, now time.Duration) {
	if key == "" || len(a.keys) <= fewKeys {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[key] = now
}

// at are the keys to sample now.
func (a *activeKeys) at(now time.Duration) []string {
	if len(a.keys) <= fewKeys {
		return a.keys
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []string
	for key, last := range a.last { // in any order: a sample names its keys
		if now-last > a.forget {
			delete(a.last, key)
			continue
		}
		keys = append(keys, key)
	}
	return keys
}
