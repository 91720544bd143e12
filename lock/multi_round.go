package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wait"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// round is one try to take all groups.
type round struct {
	groups   []group
	o        *settings
	wait     bool
	newOwner string // where neither the options nor the context have one
	holds    []partHold
	refused  error // the last refusal of this or an earlier round because of another owner; nil: none
}

// run takes the groups in their order and renews all holds when it has them. If it
// fails, nothing is left; again reports whether another round may succeed.
func (r *round) run(ctx context.Context) (again bool, err error) {
	r.holds = nil
	for i, g := range r.groups {
		again, err = r.take(ctx, g, i > 0)
		if err != nil {
			break
		}
	}
	if err == nil && len(r.groups) > 1 {
		if err = r.verify(ctx); err != nil {
			again, err = true, definiteError{err, true} // unless a release below is not
		}
	}
	if err != nil {
		for _, left := range releaseTogether(ctx, r.holds) {
			if left != nil && !Definite(left) {
				again, err = false, fmt.Errorf("%w; %w", err, left)
			}
		}
	}
	return again, err
}

// take takes one group. If others are held, it waits for its owner for a limited time only, and for the
// reply of a server that hangs for the client's timeout more.
func (r *round) take(ctx context.Context, g group, others bool) (again bool, err error) {
	limited, bound := ctx, new(multiBackoff)
	if others && r.wait {
		unit := min(g.client.o.PollMax, multiBackoffUnit)
		limit := g.client.random.Between(unit, 2*unit)
		if r.o.lease > 0 {
			limit = min(limit, r.o.lease/2/time.Duration(len(r.groups)))
		}
		bound.until = time.Now().Add(limit)
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit+g.client.o.Timeout)
		defer cancel()
	}
	holds, err := r.acquire(limited, g, bound)
	r.holds = append(r.holds, holds...)
	if bound.refused != nil {
		r.refused = failed("acquire", "lock", strings.Join(g.names(), ", "), bound.refused)
	}
	over := bound.over || ended(limited)
	return Definite(err) && (errors.Is(err, ErrHeld) || over || outcomeOf(err) == wire.NotExecuted), err
}

// ended reports whether ctx has ended. Its timer may be late: requests compare its deadline with the time
// ([lazyTimeout.Err]), and fail before it.
func ended(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return ctx.Err() != nil || limited && !time.Now().Before(deadline)
}

func (r *round) acquire(ctx context.Context, g group, bound *multiBackoff) ([]partHold, error) {
	if g.together() {
		return r.acquireBundle(ctx, g, bound)
	}
	p := g.parts[0]
	s := &settings{backoff: bound, owner: r.owner(ctx, g.client, p.key), reentrant: r.o.reentrant, lease: r.o.lease}
	h, err := p.take(ctx, s, r.wait)
	if err != nil {
		return nil, err
	}
	return []partHold{h}, nil
}

// owner is who is to hold the lock: the owner that holds it already according to ctx, or a new one.
func (r *round) owner(ctx context.Context, c *Client, key string) string {
	if r.o.owner != "" {
		return r.o.owner
	}
	if owner := ownerIn(ctx, ownerKey{c, key}); owner != "" {
		return owner
	}
	return r.newOwner
}

// verify renews each lock by its hold: that it was granted some time ago proves
// nothing, and to renew it by its name alone might renew another owner's.
func (r *round) verify(ctx context.Context) error {
	for _, h := range r.holds {
		if err := h.Renew(ctx); err != nil {
			return err
		}
	}
	return nil
}

// bundle is one call for locks that are taken by one script.
type bundle struct {
	waitLoop
	claims []claim
	lease  time.Duration
	tokens bool
	atomic bool // no other way to take the locks is allowed
	grants []granted
}

var _ requester = (*bundle)(nil)

func (r *round) acquireBundle(ctx context.Context, g group, bound *multiBackoff) ([]partHold, error) {
	c := g.client
	lease, auto, err := c.leaseOf(r.o.lease)
	if err != nil {
		return nil, err
	}
	b := &bundle{
		waitLoop: waitLoop{client: c, name: g.parts[0].name, mode: independent, lasts: lease, backoff: bound},
		lease:    lease, tokens: g.fenced, atomic: r.o.atomic,
	}
	id, mode := c.random.ID(), wait.NotifyNone
	if r.wait {
		mode = c.queues.NotifyMode()
	}
	for _, p := range g.parts {
		owner := r.owner(ctx, c, p.key)
		b.claims = append(b.claims, claim{
			name: p.name, key: p.key, owner: owner, id: id, lease: milliseconds(lease), store: c.store, notify: mode,
			nonReentrant: !r.o.reentrant && owner != r.newOwner,
		})
	}
	if r.wait {
		err = b.run(ctx, b)
	} else {
		err = b.once(ctx, b)
	}
	if err != nil && b.uncertain {
		err = b.undo(ctx, err, b.giveBack)
	}
	if err != nil {
		return nil, err
	}
	holds := make([]partHold, len(b.claims))
	for i, cl := range b.claims {
		a := &attempt{waitLoop: b.waitLoop, claim: cl, lease: lease, auto: auto}
		a.granted = b.grants[i]
		holds[i] = &newHold(ctx, a).Hold
	}
	return holds, nil
}

// giveBack releases every lock of the bundle. What is not a lock was not taken.
func (b *bundle) giveBack(ctx context.Context) error {
	for i := len(b.claims) - 1; i >= 0; i-- {
		if _, err := b.client.giveBack(ctx, b.claims[i]); err != nil && !errors.Is(err, ErrForeign) {
			return err
		}
	}
	return nil
}

// request asks the server once.
func (b *bundle) request(ctx context.Context) (turn, error) {
	sent := time.Now()
	value, err := b.client.node.DoSafe(ctx, b.call())
	if err != nil {
		// The script may have taken some before it met a lock that it cannot take.
		b.uncertain = b.uncertain || outcomeOf(err) != wire.NotExecuted && !errors.Is(err, ErrCrossSlot)
		if isMigrating(err) && !b.atomic { // they are taken one after the other
			err = &requestError{wire.Rejected, err}
		}
		return turn{}, err
	}
	r, err := decode(value, 2)
	if r.Code == wire.CodeOK {
		r, err = decode(value, 2*len(b.claims))
	}
	err = cmp.Or(err, codeError(r))
	switch {
	case err != nil:
		return turn{}, err
	case r.Code == codeRefused:
		i := min(max(r.Int(0), 1), int64(len(b.claims))) - 1
		left := time.Duration(r.Int(1)) * time.Millisecond
		return turn{ttl: left, why: ErrHeld, channel: b.claims[i].freeChannel()}, nil
	}
	b.grants = make([]granted, len(b.claims))
	for i := range b.claims {
		b.grants[i] = granted{token: r.Int(2 * i), count: int(r.Int(2*i + 1)), sent: sent}
	}
	if time.Until(sent.Add(validity(b.lease))) <= 0 {
		b.uncertain = true // the next request of these holds is granted a whole lease
		return turn{}, &requestError{wire.NotExecuted, errors.New("the reply came after the lease had expired")}
	}
	return turn{done: true}, nil
}

// call is the run of the script for all claims.
func (b *bundle) call() wire.Call {
	c := wire.Call{Script: multiScript, Args: []any{b.claims[0].id, b.claims[0].lease}}
	for _, cl := range b.claims {
		c.Keys = append(c.Keys, cl.key, cl.tombstoneKey())
		if b.tokens {
			c.Keys = append(c.Keys, cl.tokenKey())
		}
		c.Args = append(c.Args, cl.owner, flags(cl.nonReentrant, cl.notify))
	}
	return c
}
