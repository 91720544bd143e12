package lock

import "sync"

// knownHolds are the holds that this client was granted and that have not ended. Their number is the hold count of a
// quorum. The counts of the masters are unreliable, because a master may have missed a hold or the undoing of a
// claim, so every master of a majority may be wrong. Holds that another client was granted for the same owner are not
// included.
type knownHolds struct {
	mu    sync.Mutex
	holds map[ownedLock]int
}

type ownedLock struct{ name, owner string }

func (k *knownHolds) add(c claim, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.holds == nil {
		k.holds = make(map[ownedLock]int)
	}
	key := ownedLock{c.key, c.owner}
	if k.holds[key] += n; k.holds[key] <= 0 {
		delete(k.holds, key)
	}
}

func (k *knownHolds) count(name, owner string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.holds[ownedLock{name, owner}]
}
