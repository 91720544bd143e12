package lock

import (
	"context"
	"errors"
	"strings"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// movingQueue is the queue of a fair lock whose slot migrates.
type movingQueue struct {
	node          *node
	list, waiters string // keys
	channel       string // that wakes a waiter by its hold
	me            string // the entry
	keep          int64  // for how many ms it counts as alive; 0: it does not queue
}

// comesNext queues the waiter or renews its heartbeat, and reports whether nobody that is alive is before it. What has
// expired is dropped after the migration.
func (q *movingQueue) comesNext(ctx context.Context) (bool, error) {
	what := "ahead"
	args := []any{q.me, what}
	if q.keep > 0 {
		if _, err := q.node.onKey(ctx, movingQueueScript, q.waiters, q.me, "beat", q.keep); err != nil {
			return false, err
		}
		args = []any{q.me, "join", q.keep}
	}
	before, err := q.node.onKey(ctx, movingQueueScript, q.list, args...)
	if err != nil || len(before.List) == 0 {
		return err == nil, err
	}
	alive, err := q.node.onKey(ctx, movingQueueScript, q.waiters, append([]any{q.me, "alive"}, before.List...)...)
	return err == nil && len(alive.List) == 0, q.queued(err)
}

// queued marks the error of a request that follows the one that queued the waiter: even if it was not sent, or was
// refused, the attempt has to be undone.
func (q *movingQueue) queued(err error) error {
	switch {
	case err == nil || q.keep == 0 || errors.Is(err, ErrClosed):
		return err
	case outcomeOf(err) == wire.Rejected:
		return &requestError{wire.Broken, err}
	case isFinal(err):
		return err
	}
	return afterGrant(err)
}

// leave removes the waiter.
func (q *movingQueue) leave(ctx context.Context) error {
	_, err := q.node.onKey(ctx, movingQueueScript, q.list, q.me, "leave")
	if err == nil {
		_, err = q.node.onKey(ctx, movingQueueScript, q.waiters, q.me, "leave")
	}
	return err
}

// wakeFirst wakes the first in the queue, whether it is alive or not: the waiters behind it poll.
func (q *movingQueue) wakeFirst(ctx context.Context) {
	value, _ := q.node.Do(ctx, wire.Call{Command: []any{"lindex", q.list, 0}})
	if entry, ok := value.(string); ok {
		hold, _, _ := strings.Cut(entry, " ")
		q.node.notify(ctx, q.channel, hold)
	}
}

func (s *fairStore) movingQueue(c claim) *movingQueue {
	keys := queueKeys(c.key)
	return &movingQueue{s.node, keys[0], keys[1], grantChannel(c.key), c.id + " " + c.owner, c.waiterTTL}
}

// acquireMigrating keeps the order of waiters: a hold is granted a free lock if nobody comes before it. The hash alone
// decides who holds it, as with a mutex.
func (s *fairStore) acquireMigrating(ctx context.Context, c claim) (grant, error) {
	value, err := s.node.Do(ctx, wire.Call{Command: []any{"hmget", c.key, "owner", "h:" + c.id}})
	if err != nil && !errors.Is(err, ErrForeign) { // a string is a mutex
		return grant{}, err
	}
	lock, _ := value.([]any)
	mine := len(lock) == 2 && (lock[0] == c.owner || lock[1] != nil)
	q := s.movingQueue(c)
	if !mine {
		if err := s.node.refuseReleased(ctx, c.tombstoneKey()); err != nil {
			return grant{}, err
		}
		if next, err := q.comesNext(ctx); err != nil || !next {
			return grant{why: ErrHeld, ttl: pollUnsubscribed}, err
		}
	}
	g, err := s.single.acquireMigrating(ctx, c)
	if err != nil || !g.ok || q.keep == 0 {
		return g, q.queued(err)
	}
	return g, afterGrant(q.leave(ctx))
}

func (s *fairStore) releaseMigrating(ctx context.Context, c claim) (int, error) {
	q := s.movingQueue(c)
	if err := q.leave(ctx); err != nil {
		return 0, err
	}
	left, err := s.single.releaseMigrating(ctx, c)
	if err == nil && left <= 0 {
		q.wakeFirst(ctx)
	}
	return left, err
}
