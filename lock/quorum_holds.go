package lock

import (
	"context"
	"sync"
	"time"
)

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
	key := ownedLock{c.name, c.owner}
	if k.holds[key] += n; k.holds[key] <= 0 {
		delete(k.holds, key)
	}
}

func (k *knownHolds) count(name, owner string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.holds[ownedLock{name, owner}]
}

// giveBack releases c on every master, and retries those that do not reply.
func (q *quorum) giveBack(ctx context.Context, c claim, limit time.Duration) <-chan vote[int] {
	return broadcast(ctx, q, q.releases, limit, func(ctx context.Context, i int) (int, error) {
		left, err := q.nodes[i].release(ctx, c)
		if err != nil {
			q.releaseLater(c, i)
		}
		return left, err
	})
}

// releaseLater releases c on a master that did not reply, in a few tries.
func (q *quorum) releaseLater(c claim, node int) {
	limit := q.o.nodeLimit(time.Duration(c.lease) * time.Millisecond)
	random := q.random.split(c.id, node)
	q.bg.start(func() {
		for range tries {
			if _, ok := q.bg.sleep(q.bg.ctx, random.between(limit, 2*limit), nil); !ok {
				return
			}
			ctx, cancel := context.WithTimeout(q.bg.ctx, limit)
			_, err := q.nodes[node].release(ctx, c)
			cancel()
			if err == nil {
				return
			}
		}
	})
}
