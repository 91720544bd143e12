package lock

import "sync"

// knownHolds are the holds that this client was granted and that have not ended.
// They are the hold count of a quorum: the counts of the masters are unreliable,
// because one may have missed a hold or the withdrawal of a claim, and then none of a
// majority may be right. A hold that another client was granted for the same owner is
// not among them.
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
