package locks

import (
	"errors"
	"sync"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/lock"
)

// permitOwners remembers whose permits they are: unlike lock.Hold, lock.Permits do not know key and owner.
type permitOwners struct {
	mu   sync.Mutex
	of   map[*lock.Permits]client.Hold
	lost map[*lock.Permits]bool // reported before their owner was known
}

func newPermitOwners() *permitOwners {
	return &permitOwners{of: map[*lock.Permits]client.Hold{}, lost: map[*lock.Permits]bool{}}
}

// add remembers the owner of p until p is released, or its loss is reported, and says whether that was reported
// already.
func (o *permitOwners) add(p *lock.Permits, ref client.Hold) (lost bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost[p] {
		delete(o.lost, p)
		return true
	}
	o.of[p] = ref
	go func() {
		if <-p.Done(); !errors.Is(p.Err(), lock.ErrLost) {
			o.take(p)
		}
	}()
	return false
}

// take forgets the owner of p, and returns it if it was known.
func (o *permitOwners) take(p *lock.Permits) (ref client.Hold, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ref, known = o.of[p]
	delete(o.of, p)
	return ref, known
}

// takeLost is take for a reported loss: a loss of unknown permits is kept for add.
func (o *permitOwners) takeLost(p *lock.Permits) (ref client.Hold, known bool) {
	if ref, known = o.take(p); !known {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.lost[p] = true
	}
	return ref, known
}

// owner is whose permits p are, if that is known.
func (o *permitOwners) owner(p *lock.Permits) (ref client.Hold, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ref, known = o.of[p]
	return ref, known
}
