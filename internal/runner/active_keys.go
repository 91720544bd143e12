package runner

import (
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/workloads"
)

// allKeys is up to how many keys a sample asks for every one. Ten thousand take
// longer than a sample may, and would load the server that is under test: it
// would look dead for most of the run.
const fewKeys = 64

// interest knows which keys are worth a look. Nobody asks for the others, so
// they are as they were when somebody last did.
type activeKeys struct {
	keys   []string
	forget time.Duration // after the last event of a key; longer than a hold is silent, and than its lease

	mu   sync.Mutex
	last map[string]time.Duration // time of the last event, by key
}

func newActiveKeys(p workloads.Params) *activeKeys {
	return &activeKeys{
		keys: p.KeyNames(), forget: p.Lease + p.Hold + p.Jitter + keepAround, last: map[string]time.Duration{},
	}
}

// see takes note of an event. Events without a key are about none.
func (i *activeKeys) add(key string, now time.Duration) {
	if key == "" || len(i.keys) <= fewKeys {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last[key] = now
}

// at is the keys to look at now.
func (i *activeKeys) at(now time.Duration) []string {
	if len(i.keys) <= fewKeys {
		return i.keys
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var keys []string
	for key, last := range i.last { // order does not matter: a sample names its keys
		if now-last > i.forget {
			delete(i.last, key)
			continue
		}
		keys = append(keys, key)
	}
	return keys
}
