package lock

import (
	"context"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// ended ends an admitted request to a master, with its error; if ctx has ended, nobody waited for the reply.
func (q *quorum) ended(ctx context.Context, node int, err error) {
	if ctx.Err() != nil {
		q.inFlight.Stopped(node)
		return
	}
	q.inFlight.Done(node, err == nil || outcomeOf(err) != wire.Unknown)
}

// giveBack releases c on every master that is not in except, and again on masters that do not reply. It calls confirmed
// for each master that confirms the first request.
func (q *quorum) giveBack(ctx context.Context, c claim, limit time.Duration, except map[int]bool,
	confirmed func()) <-chan vote[int] {
	votes := make(chan vote[int], len(q.nodes))
	for i := range q.nodes {
		switch {
		case except[i]:
			continue
		case !q.inFlight.Admit(i):
			q.releaseLater(c, i)
			votes <- vote[int]{node: i, err: &requestError{wire.Unknown, errSilent}}
			continue
		}
		started := q.releases.Start(func() {
			limited, cancel := context.WithTimeout(ctx, limit+time.Duration(i)*timeoutStep)
			defer cancel()
			left, err := q.nodes[i].release(limited, c)
			q.ended(ctx, i, err)
			if err != nil && !q.releaseLater(c, i) { // Close waits for this goroutine
				q.releaseLast(i, limit)
			}
			if err == nil {
				confirmed()
			}
			votes <- vote[int]{i, left, err}
		})
		if !started {
			q.inFlight.Stopped(i)
			votes <- vote[int]{node: i, err: &requestError{wire.Rejected, ErrClosed}}
		}
	}
	return votes
}

// lateReleases are the claims that one master has not confirmed to be released. They are sent again
// together, a few times, and once more when the client is closed; a dropped one expires with its lease.
type lateReleases struct {
	mu      sync.Mutex
	claims  []lateRelease // oldest first
	running bool
}

type lateRelease struct {
	claim claim
	tries int
}

// maxLate bounds how many claims are kept for one master.
const maxLate = 1024

// releaseLater releases c on a master that did not reply, in a few tries. It reports false if the client is being
// closed and nothing sends it.
func (q *quorum) releaseLater(c claim, node int) bool {
	l := &q.late[node]
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.claims) >= maxLate {
		l.claims = l.claims[1:]
	}
	l.claims = append(l.claims, lateRelease{claim: c})
	if !l.running {
		l.running = q.releases.Start(func() { q.releaseAll(node, c) })
	}
	return l.running
}

// releaseAll sends the late releases of a master until none is left or the client is closed. The first is c.
func (q *quorum) releaseAll(node int, c claim) {
	random := q.random.Split(c.id, node)
	limit := q.nodeLimit(c)
	for q.releases.Sleep(q.releases.Context, random.Between(limit, 2*limit), nil) {
		some := q.late[node].take()
		if len(some) == 0 {
			return
		}
		q.late[node].putBack(q.releaseTogether(node, some, limit))
	}
	q.releaseLast(node, limit)
}

// releaseLast sends the late releases of a master for the last time. The master may be slow: it gets as long as any
// release that must be done.
func (q *quorum) releaseLast(node int, limit time.Duration) {
	if some := q.late[node].take(); len(some) > 0 {
		q.releaseTogether(node, some, max(limit, q.o.Timeout))
	}
}

// releaseTogether releases claims on a master, and returns the claims to be tried again.
func (q *quorum) releaseTogether(node int, some []lateRelease, limit time.Duration) []lateRelease {
	ctx, cancel := context.WithTimeout(q.bg.Context, limit)
	defer cancel()
	calls := make([]wire.Call, len(some))
	for i, l := range some {
		calls[i] = q.nodes[node].releaseCall(l.claim)
	}
	var failed []lateRelease
	for i, a := range q.nodes[node].node.DoAll(ctx, calls) {
		if some[i].tries++; a.Err != nil && some[i].tries < tries {
			failed = append(failed, some[i])
		}
	}
	return failed
}

// take takes out all claims; if there are none, the goroutine that sends them ends.
func (l *lateReleases) take() []lateRelease {
	l.mu.Lock()
	defer l.mu.Unlock()
	some := l.claims
	l.claims = nil
	l.running = len(some) > 0
	return some
}

func (l *lateReleases) putBack(some []lateRelease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims = append(some, l.claims...)
}
