package lock

import (
	"context"
	"sync"
	"time"
)

// owed is what this client has asked the masters to give back and they have not
// confirmed. A release is over when a majority has confirmed it; on the others,
// which are slow or were not reached, the hold is there for a while longer. If
// the same owner is granted the lock again meanwhile, these masters count it
// twice, and their counts are taken for what they are worth.
type owed struct {
	mu     sync.Mutex
	claims map[debt]int
}

// debt is a master's, towards one owner of one lock.
type debt struct {
	node        int
	name, owner string
}

func debtOf(node int, c claim) debt { return debt{node, c.name, c.owner} }

func (o *owed) add(d debt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.claims == nil {
		o.claims = make(map[debt]int)
	}
	o.claims[d]++
}

func (o *owed) settle(d debt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.claims[d]--; o.claims[d] <= 0 {
		delete(o.claims, d)
	}
}

func (o *owed) count(d debt) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.claims[d]
}

// knownHolds are the holds that this client has been granted and that have not
// ended. They are not all that an owner may have: another client may have been
// granted one in its name.
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

// claimAt asks one master for c, and notes what it owes: its count may have all
// of that in it, or, if it has paid and the answer is on its way, nothing.
func (q *quorum) claimAt(ctx context.Context, i int, c claim) (grant, error) {
	still := q.owed.count(debtOf(i, c))
	g, err := q.nodes[i].acquire(ctx, c)
	g.owed = still
	return g, err
}

// giveBack asks every master to release c, those that do not answer a few times
// more. The holds that are left are counted without what the master owes beside: too
// few if it has paid meanwhile. Of a majority one at least counts right.
func (q *quorum) giveBack(ctx context.Context, c claim, limit time.Duration) <-chan vote[int] {
	for i := range q.nodes {
		q.owed.add(debtOf(i, c))
	}
	return poll(ctx, q, limit, func(ctx context.Context, i int) (int, error) {
		others := q.owed.count(debtOf(i, c)) - 1
		left, err := q.nodes[i].release(ctx, c)
		if err != nil {
			q.releaseLater(c, i)
			return 0, err
		}
		q.owed.settle(debtOf(i, c))
		if left > 0 {
			left = max(left-others, 0)
		}
		return left, nil
	})
}

// releaseLater asks a master that did not answer a few times more.
func (q *quorum) releaseLater(c claim, node int) {
	limit := q.o.nodeLimit(time.Duration(c.lease) * time.Millisecond)
	q.bg.start(func() {
		defer q.owed.settle(debtOf(node, c))
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
