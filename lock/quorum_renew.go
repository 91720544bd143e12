package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// renew extends claims on a majority, within their validity, and then restores claims that a master of the minority has
// lost: otherwise a lock that was granted by the smallest majority is lost with one restart (redsync#186).
func (q *quorum) renew(ctx context.Context, claims []claim) []renewal {
	shortest := claims[0].lease
	for _, c := range claims {
		shortest = min(shortest, c.lease)
	}
	limit := q.o.nodeLimit(time.Duration(shortest) * time.Millisecond)
	sent := time.Now()
	votes, _ := broadcast(ctx, q, q.bg, limit, func(ctx context.Context, i int) ([]renewal, error) {
		renewed := q.nodes[i].renew(ctx, claims)
		return renewed, renewed[0].err // one error stands for all: they are sent together
	})
	ballots := make([]ballot, len(claims))
	seen := 0
	for seen < len(q.nodes) && ctx.Err() == nil && !q.decided(ballots) {
		select {
		case v := <-votes:
			seen++
			for i, r := range v.value {
				ballots[i].count(v.node, r)
			}
		case <-ctx.Done():
		}
	}
	out := make([]renewal, len(claims))
	for i, b := range ballots {
		out[i] = q.result(claims[i], b, sent)
	}
	q.bg.Start(func() { q.restoreLost(claims, ballots, votes, len(q.nodes)-seen) })
	return out
}

// restoreLost waits for the masters that have not replied yet, and restores each
// claim that a majority keeps on the masters that have lost it.
func (q *quorum) restoreLost(claims []claim, ballots []ballot, votes <-chan vote[[]renewal], open int) {
	for range open {
		v := <-votes
		for i, r := range v.value {
			ballots[i].count(v.node, r)
		}
	}
	for i, b := range ballots {
		if b.kept < q.need() {
			continue
		}
		for _, node := range b.lost {
			q.restore(claims[i], node)
		}
	}
}

// ballot counts the replies for one claim.
type ballot struct {
	kept int
	lost []int // masters that replied and do not have the claim
}

func (b *ballot) count(node int, r renewal) {
	switch {
	case r.err != nil:
	case r.kept:
		b.kept++
	default:
		b.lost = append(b.lost, node)
	}
}

// decided reports whether a majority keeps every claim, so that no further reply changes the result.
func (q *quorum) decided(ballots []ballot) bool {
	for _, b := range ballots {
		if b.kept < q.need() {
			return false
		}
	}
	return true
}

func (q *quorum) result(c claim, b ballot, sent time.Time) renewal {
	lease := time.Duration(c.lease) * time.Millisecond
	switch {
	case len(b.lost) > len(q.nodes)-q.need():
		return renewal{sent: sent}
	case b.kept < q.need():
		err := fmt.Errorf("%w: %d of %d renewed", ErrNoQuorum, b.kept, len(q.nodes))
		return renewal{sent: sent, err: &requestError{wire.Unknown, err}}
	case time.Since(sent) >= validity(lease):
		err := fmt.Errorf("a majority replied after the lease had expired")
		return renewal{sent: sent, err: &requestError{wire.Unknown, err}}
	}
	return renewal{kept: true, sent: sent}
}

// restore claims c again on a master that has lost it, while a majority keeps it. If
// the hold is released meanwhile, the tombstone refuses a request that arrives late.
func (q *quorum) restore(c claim, node int) {
	limit := q.nodeLimit(c)
	q.bg.Start(func() {
		ctx, cancel := context.WithTimeout(q.bg.Context, limit)
		defer cancel()
		_, _ = q.nodes[node].acquire(ctx, c) // the next renewal finds out
	})
}
