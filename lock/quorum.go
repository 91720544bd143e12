package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// quorum keeps locks on a majority of independent masters: the RedLock
// algorithm of the Redis documentation, with its validity enforced.
type quorum struct {
	nodes  []*single
	bg     *background
	o      Options
	random []*random // one for each node: what is drawn for one does not depend on the others
	known  knownHolds
	giving *background // releases on their way, which Close lets arrive
}

var _ store = (*quorum)(nil)

// need is how many masters are a majority.
func (q *quorum) need() int { return len(q.nodes)/2 + 1 }

// vote is one master's answer to T.
type vote[T any] struct {
	node  int
	value T
	err   error
}

// givingUp is the time between one silent master's limit and the next one's.
const givingUp = time.Microsecond

// poll asks every master at once, each for no longer than limit, whatever
// becomes of ctx: a request that has been sent is part of the claim, and its
// answer is awaited as long as anybody wants to know.
func poll[T any](ctx context.Context, q *quorum, bg *background, limit time.Duration,
	ask func(ctx context.Context, node int) (T, error)) <-chan vote[T] {
	votes := make(chan vote[T], len(q.nodes))
	for i := range q.nodes {
		started := bg.start(func() {
			// Those that are silent are given up one after the other: what comes of it
			// does not depend on which of several timers is served first.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit+time.Duration(i)*givingUp)
			defer cancel()
			value, err := ask(ctx, i)
			votes <- vote[T]{i, value, err}
		})
		if !started {
			votes <- vote[T]{node: i, err: &requestError{rejected, ErrClosed}}
		}
	}
	return votes
}

func (q *quorum) acquire(ctx context.Context, c claim) (grant, error) {
	if ctx.Err() != nil {
		return grant{}, notSentError(ctx)
	}
	lease := time.Duration(c.lease) * time.Millisecond
	sent := time.Now()
	votes := poll(ctx, q, q.bg, q.o.nodeLimit(lease), func(ctx context.Context, i int) (grant, error) {
		return q.nodes[i].acquire(ctx, c)
	})
	t := tally{sure: make(map[int]bool)}
	for seen := 0; seen < len(q.nodes) && t.granted < q.need(); seen++ {
		select {
		case v := <-votes:
			t.count(v)
		case <-ctx.Done():
			return grant{}, q.fail(c, &t, t.interrupted(ctx, len(q.nodes)))
		}
		if t.granted+len(q.nodes)-seen-1 < q.need() {
			break // the rest cannot make a majority any more
		}
	}
	switch {
	case t.granted < q.need() && t.held == 0 || len(t.errs) > len(q.nodes)-q.need():
		return grant{}, q.fail(c, &t, t.noQuorum(len(q.nodes)))
	case t.granted < q.need():
		if err := q.withdraw(c, &t); err != nil {
			return grant{}, err
		}
		return grant{ttl: t.ttl, sent: sent}, nil
	case time.Since(sent) >= validity(lease):
		return grant{}, q.fail(c, &t, errors.New("a majority answered after the lease was over"))
	}
	return grant{ok: true, count: q.known.count(c.name, c.owner) + 1, sent: sent}, nil
}

// tally counts the answers to a claim.
type tally struct {
	granted, held int
	ttl           time.Duration // shortest that another owner has left
	errs          []string
	refused       int
	why           error        // of the last one that refused
	sure          map[int]bool // masters that certainly do not keep the claim
}

func (t *tally) count(v vote[grant]) {
	switch {
	case v.err != nil:
		t.errs = append(t.errs, fmt.Sprintf("master %d: %v", v.node+1, v.err))
		t.sure[v.node] = outcomeOf(v.err) != unknown
		if outcomeOf(v.err) == rejected {
			t.why = v.err
			t.refused++
		}
	case v.value.ok:
		t.granted++
	default:
		t.sure[v.node] = true
		if t.held == 0 || v.value.ttl < t.ttl {
			t.ttl = v.value.ttl
		}
		t.held++
	}
}

func (t *tally) noQuorum(n int) error {
	if t.refused > n-(n/2+1) {
		return &requestError{rejected, fmt.Errorf("%w: %s (%w)", ErrNoQuorum, strings.Join(t.errs, "; "), t.why)}
	}
	return fmt.Errorf("%w: %d of %d: %s", ErrNoQuorum, n-len(t.errs), n, strings.Join(t.errs, "; "))
}

// interrupted is the error of a claim that ctx did not leave the time for.
func (t *tally) interrupted(ctx context.Context, n int) error {
	if t.held > n-(n/2+1) {
		return fmt.Errorf("%w: %w", ErrHeld, context.Cause(ctx))
	}
	return fmt.Errorf("%w in time: %d of %d: %w", ErrNoQuorum, t.granted+t.held, n, context.Cause(ctx))
}

// fail cleans up after a claim and returns why it failed, with its fate.
func (q *quorum) fail(c claim, t *tally, why error) error {
	if err := q.withdraw(c, t); err != nil {
		return &requestError{unknown, fmt.Errorf("%w; %w", why, err)}
	}
	if r := (*requestError)(nil); errors.As(why, &r) {
		return r
	}
	return &requestError{notExecuted, why}
}

// withdraw gives c back on all masters, those included that have not answered,
// and waits one node's limit for it. Its error says that a majority may still keep
// the claim; a minority is no hold, and its keys end with the lease.
func (q *quorum) withdraw(c claim, t *tally) error {
	limit := q.o.nodeLimit(time.Duration(c.lease) * time.Millisecond)
	votes := q.giveBack(context.Background(), c, limit)
	unsure := 0
	for range q.nodes {
		v := <-votes
		if v.err != nil && !t.sure[v.node] {
			unsure++
		}
	}
	if unsure >= q.need() {
		return &requestError{unknown, fmt.Errorf("%d masters did not confirm that the claim is withdrawn", unsure)}
	}
	return nil
}

func (q *quorum) release(ctx context.Context, c claim) (int, error) {
	limit := q.o.nodeLimit(time.Duration(c.lease) * time.Millisecond)
	votes := q.giveBack(ctx, c, limit)
	gone, why := 0, -1
	released := 0
	var errs []string
	for range q.nodes {
		v := <-votes
		switch {
		case v.err != nil:
			errs = append(errs, fmt.Sprintf("master %d: %v", v.node+1, v.err))
		case v.value >= 0:
			released++
		default:
			gone++
			why = min(why, v.value)
		}
		switch {
		case released >= q.need():
			return q.known.count(c.name, c.owner), nil
		case gone > len(q.nodes)-q.need():
			return why, nil
		}
	}
	return 0, &requestError{unknown, fmt.Errorf("%w: %s", ErrNoQuorum, strings.Join(errs, "; "))}
}
