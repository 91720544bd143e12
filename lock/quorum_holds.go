package lock

import (
	"context"
	"sync"
	"time"
)

// knownHolds are the holds that this client has been granted and that have not
// ended. They are the hold count of a quorum: what masters count is not to be
// relied on, because one may have missed a hold, or not have heard yet of claims
// that were given up, and then of a majority none may be right. A hold that
// another client was granted in the same owner's name is not among them.
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
	of := ownedLock{c.name, c.owner}
	if k.holds[of] += n; k.holds[of] <= 0 {
		delete(k.holds, of)
	}
}

func (k *knownHolds) count(name, owner string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.holds[ownedLock{name, owner}]
}

// giveBack asks every master to release c, those that do not answer a few times more.
func (q *quorum) giveBack(ctx context.Context, c claim, limit time.Duration) <-chan vote[int] {
	return poll(ctx, q, q.giving, limit, func(ctx context.Context, i int) (int, error) {
		left, err := q.nodes[i].release(ctx, c)
		if err != nil {
			q.releaseLater(c, i)
		}
		return left, err
	})
}

// releaseLater asks a master that did not answer a few times more.
func (q *quorum) releaseLater(c claim, node int) {
	limit := q.o.nodeLimit(time.Duration(c.lease) * time.Millisecond)
	q.bg.start(func() {
		for range tries {
			select {
			case <-time.After(q.random[node].between(limit, 2*limit)):
			case <-q.bg.ctx.Done():
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
