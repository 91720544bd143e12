package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// permitsRecord keeps how many permits were released, as permits_release.lua does.
func permitsRecord(n int) recordFormat {
	return recordFormat{
		text: func(left int) string {
			if left < 0 {
				return "1 0"
			}
			return fmt.Sprintf("1 %d", n)
		},
		left: func(text string) int {
			if _, released, _ := strings.Cut(text, " "); released != strconv.Itoa(n) {
				return codeNotHeld
			}
			return 0
		},
	}
}

func (s *permitStore) movingQueue(c claim) *movingQueue {
	keys := queueKeys(c.key)
	me := c.id + " " + strconv.Itoa(c.permits)
	return &movingQueue{s.node, keys[0], keys[1], c.freeChannel(), me, c.waiterTTL}
}

// acquireMigrating takes leased permits by the set of permits alone.
func (s *permitStore) acquireMigrating(ctx context.Context, c claim) (any, error) {
	if err := s.node.refuseReleased(ctx, c.tombstoneKey()); err != nil {
		return nil, err
	}
	total, err := s.total(ctx, c)
	if err != nil || total.Code == codeAbsent {
		return int64(codeAbsent), err
	}
	q := s.movingQueue(c)
	held, err := s.node.Do(ctx, wire.Call{Command: []any{"zscore", permitsKey(c.key), s.ids(c)[0]}})
	if err != nil {
		return nil, err
	}
	args := []any{c.id, c.lease, c.permits, total.Int(0), c.tombstoneKey()}
	if s.fair && held == nil && int64(c.permits) <= total.Int(0) {
		next, err := q.comesNext(ctx)
		if err != nil || !next && q.keep > 0 {
			return []any{int64(codeRefused), int64(0), int64(0), int64(0)}, err
		}
		if !next { // a try: its error says whether enough permits are free
			args = append(args, "queued")
		}
	}
	value, err := s.node.DoSafe(ctx, wire.Call{
		Script: s.node.kinds.permit.movingAcquire, Keys: []string{permitsKey(c.key)}, Args: args,
	})
	if err != nil {
		return nil, q.queued(err)
	}
	r, err := decode(value, 1)
	if err != nil || r.Code != wire.CodeOK {
		return value, err
	}
	if r.Int(3) == 1 {
		s.addFree(ctx, c.key, -c.permits)
	}
	// If there are fewer by now, the slot has migrated, and the permits were granted after that.
	if again, err := s.total(ctx, c); err != nil || again.Int(0) < total.Int(0) {
		_, undo := s.node.Do(ctx, s.movingRelease(c.key, s.ids(c)))
		return nil, &requestError{wire.Unknown, errors.Join(errFewer, err, undo)}
	}
	if s.fair && q.keep > 0 {
		err = afterGrant(q.leave(ctx))
	}
	return value, err
}

// errFewer is the error of an acquire whose permits are released again.
var errFewer = errors.New("the semaphore has fewer permits than when they were asked for")

func (s *permitStore) total(ctx context.Context, c claim) (wire.Reply, error) {
	return s.node.onKey(ctx, s.node.kinds.permit.total, c.key)
}

// addFree changes how many permits the hash says are free. They are counted again when the slot has migrated.
func (s *permitStore) addFree(ctx context.Context, key string, n int) {
	_, _ = s.node.Do(ctx, wire.Call{Command: []any{"hincrby", key, "free", n}})
}

func (s *permitStore) releaseMigrating(ctx context.Context, c claim, ids []string) (int, error) {
	q := s.movingQueue(c)
	if s.fair {
		if err := q.leave(ctx); err != nil {
			return 0, err
		}
	}
	left, err := s.node.releaseOnce(ctx, c.tombstoneKey(), s.tombstoneTTL, permitsRecord(len(ids)), func() (int, error) {
		r, err := s.node.Ask(ctx, s.movingRelease(c.key, ids), 1)
		if r.Int(0) > 0 {
			s.addFree(ctx, c.key, int(r.Int(0)))
		}
		if r.Int(0) < int64(len(ids)) {
			return codeNotHeld, err
		}
		return 0, err
	})
	if err != nil || left < 0 {
		return left, err
	}
	if s.fair {
		q.wakeFirst(ctx)
	} else {
		s.node.notify(ctx, c.freeChannel(), fmt.Sprintf("+%d", len(ids)))
	}
	return left, nil
}

func (s *permitStore) movingRelease(key string, ids []string) wire.Call {
	what := wire.Call{Script: s.node.kinds.permit.movingRelease, Keys: []string{permitsKey(key)}}
	for _, id := range ids {
		what.Args = append(what.Args, id)
	}
	return what
}

func (s *permitStore) renewAlone(c claim) wire.Call {
	return wire.Call{
		Script: s.node.kinds.permit.movingRenew, Keys: []string{permitsKey(c.key)}, Args: []any{c.id, c.lease, c.permits},
	}
}
