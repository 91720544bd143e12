package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/inflight"
	"github.com/lockchaos/lockchaos/lock/internal/owned"
	"github.com/lockchaos/lockchaos/lock/internal/random"
	"github.com/lockchaos/lockchaos/lock/internal/tasks"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// quorum keeps locks on a majority of independent masters: the RedLock
// algorithm of the Redis documentation, with its validity enforced.
type quorum struct {
	nodes    []*single
	bg       *tasks.Group
	o        Options
	random   *random.Source
	known    owned.Holds
	releases *tasks.Group // in flight; Close waits for them
	inFlight *inflight.Masters
	late     []lateReleases // of each master
	unsure   owned.Withdrawn
	servers  servers
}

var _ store = (*quorum)(nil)

// need is how many masters are a majority.
func (q *quorum) need() int { return len(q.nodes)/2 + 1 }

// vote is one master's reply.
type vote[T any] struct {
	node  int
	value T
	err   error
}

// timeoutStep is the time between one silent master's timeout and the next one's.
const timeoutStep = time.Microsecond

// errSilent is the error of a request that was not sent: earlier ones are without a reply.
var errSilent = errors.New("it does not reply")

// broadcast sends a request to every master at once, each with the timeout limit. One that was sent is
// part of the claim, even if ctx ends: stop is for when its reply no longer changes anything. A master that
// does not reply gets few requests at a time.
func broadcast[T any](ctx context.Context, q *quorum, bg *tasks.Group, limit time.Duration,
	request func(ctx context.Context, node int) (T, error)) (<-chan vote[T], context.CancelFunc) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	votes := make(chan vote[T], len(q.nodes))
	for i := range q.nodes {
		if !q.inFlight.Admit(i) {
			votes <- vote[T]{node: i, err: &requestError{wire.NotExecuted, errSilent}}
			continue
		}
		started := bg.Start(func() {
			// Silent masters time out one after the other: the result does not depend on which of several timers fires first.
			limited, cancel := context.WithTimeout(ctx, limit+time.Duration(i)*timeoutStep)
			defer cancel()
			value, err := request(limited, i)
			q.ended(ctx, i, err)
			votes <- vote[T]{i, value, err}
		})
		if !started {
			q.inFlight.Stopped(i)
			votes <- vote[T]{node: i, err: &requestError{wire.Rejected, ErrClosed}}
		}
	}
	return votes, stop
}

func (q *quorum) kind() string { return "lock" }

func (q *quorum) acquire(ctx context.Context, c claim) (grant, error) {
	if ctx.Err() != nil {
		return grant{}, judge(wire.NotSent(ctx))
	}
	if err := q.checkServers(ctx, c); err != nil {
		return grant{}, err
	}
	sent, lease := time.Now(), time.Duration(c.lease)*time.Millisecond
	votes, stop := broadcast(ctx, q, q.bg, q.nodeLimit(c), func(ctx context.Context, i int) (grant, error) {
		g, err := q.nodes[i].acquire(ctx, c)
		if errors.Is(err, ErrReentered) && q.known.Count(c.owned()) == 0 && q.unsure.Has(c.owned()) {
			return grant{ttl: lease}, nil // perhaps the master has only an earlier claim of this client
		}
		return g, err
	})
	t := tally{sure: make(map[int]bool)}
	g, err := q.decide(ctx, c, &t, votes, sent)
	if err != nil || !g.ok { // the other masters are still asked for a claim that is granted
		stop()
	}
	return g, err
}

// decide counts the votes for a claim until its result is certain, and withdraws it if it is not granted.
func (q *quorum) decide(ctx context.Context, c claim, t *tally, votes <-chan vote[grant],
	sent time.Time) (grant, error) {
	lease := time.Duration(c.lease) * time.Millisecond
	for seen := 0; seen < len(q.nodes) && t.granted < q.need(); seen++ {
		select {
		case v := <-votes:
			t.count(v)
		case <-ctx.Done():
			return grant{}, q.fail(c, t, t.interrupted(ctx, len(q.nodes)))
		}
		if t.granted+len(q.nodes)-seen-1 < q.need() {
			break // the rest can no longer make a majority
		}
	}
	spare := len(q.nodes) - q.need()
	switch {
	case len(t.errs) > spare:
		return grant{}, q.fail(c, t, t.noQuorum(len(q.nodes)))
	case t.granted < q.need():
		own := q.known.Count(c.owned()) > 0 // then no other owner has it, and the missing replies decide
		if own && len(t.errs) > 0 && t.held <= spare {
			return grant{}, q.fail(c, t, t.noQuorum(len(q.nodes)))
		}
		if err := q.withdraw(c, t); err != nil {
			return grant{}, err
		}
		return grant{why: ErrHeld, ttl: t.ttl}, nil
	case time.Since(sent) >= validity(lease):
		return grant{}, q.fail(c, t, errors.New("a majority replied after the lease had expired"))
	}
	return grant{ok: true, granted: granted{count: q.known.Count(c.owned()) + 1, sent: sent}}, nil
}

// tally counts the replies to a claim.
type tally struct {
	granted, held int
	ttl           time.Duration // shortest that another owner has left
	errs          []string
	rejected      int
	reentered     int          // of the rejected ones, because the owner has the lock
	why           error        // of the last rejection
	sure          map[int]bool // masters that certainly do not keep the claim
}

func (t *tally) count(v vote[grant]) {
	switch {
	case v.err != nil:
		t.errs = append(t.errs, fmt.Sprintf("master %d: %v", v.node+1, v.err))
		o := outcomeOf(v.err)
		t.sure[v.node] = !o.MayHaveHappened()
		if o == wire.Rejected || o == wire.Broken {
			t.why = v.err
			t.rejected++
			if errors.Is(v.err, ErrReentered) {
				t.reentered++
			}
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
	switch minority := n - (n/2 + 1); {
	case t.reentered > minority: // the owner has the lock
		return &requestError{wire.Rejected, ErrReentered}
	case t.rejected > minority:
		return &requestError{wire.Rejected, fmt.Errorf("%w: %s (%w)", ErrNoQuorum, strings.Join(t.errs, "; "), t.why)}
	}
	return fmt.Errorf("%w: %d of %d: %s", ErrNoQuorum, n-len(t.errs), n, strings.Join(t.errs, "; "))
}

// interrupted is the error of a claim for which ctx left too little time.
func (t *tally) interrupted(ctx context.Context, n int) error {
	if t.held > n-(n/2+1) {
		return fmt.Errorf("%w: %w", ErrHeld, context.Cause(ctx))
	}
	return fmt.Errorf("%w in time: %d of %d: %w", ErrNoQuorum, t.granted+t.held, n, context.Cause(ctx))
}

// fail withdraws a claim and returns why it failed, with its outcome.
func (q *quorum) fail(c claim, t *tally, why error) error {
	if err := q.withdraw(c, t); err != nil {
		return &requestError{wire.Unknown, fmt.Errorf("%w; %w", why, err)}
	}
	if r := (*requestError)(nil); errors.As(why, &r) {
		return r
	}
	return &requestError{wire.NotExecuted, why}
}

// withdraw releases c on the masters that may have it, including masters without a reply, and waits until a majority
// certainly does not have it, or for one node's timeout. An error means that a majority may still have the claim; a
// claim on a minority is no hold, and its keys expire with the lease.
func (q *quorum) withdraw(c claim, t *tally) error {
	certain := 0
	for i := range q.nodes {
		if t.sure[i] {
			certain++
		}
	}
	if certain == len(q.nodes) {
		return nil
	}
	open := q.unsure.Add(c.owned(), time.Duration(c.lease)*time.Millisecond, len(q.nodes)-certain)
	confirmed := func() { q.unsure.Confirm(open) }
	votes := q.giveBack(context.Background(), c, q.nodeLimit(c), t.sure, confirmed)
	for seen := certain; seen < len(q.nodes) && certain < q.need(); seen++ {
		if v := <-votes; v.err == nil {
			certain++
		}
	}
	if unsure := len(q.nodes) - certain; certain < q.need() {
		err := fmt.Errorf("%d of the masters did not confirm that the claim was withdrawn", unsure)
		return &requestError{wire.Unknown, err}
	}
	return nil
}

// nodeLimit bounds one request about c to one master.
func (q *quorum) nodeLimit(c claim) time.Duration {
	return q.o.nodeLimit(time.Duration(c.lease) * time.Millisecond)
}

func (q *quorum) release(ctx context.Context, c claim) (int, error) {
	votes := q.giveBack(context.WithoutCancel(ctx), c, q.nodeLimit(c), nil, func() {})
	notHeld, why := 0, codeNotHeld
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
			notHeld++
			why = min(why, v.value) // codeNotOwner is less
		}
		switch {
		case released >= q.need():
			return q.known.Count(c.owned()), nil
		case notHeld > len(q.nodes)-q.need():
			return why, nil
		}
	}
	return 0, &requestError{wire.Unknown, fmt.Errorf("%w: %s", ErrNoQuorum, strings.Join(errs, "; "))}
}
