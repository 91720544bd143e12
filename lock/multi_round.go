package lock

import (
	"context"
	_ "embed" // the script is part of the program
	"errors"
	"fmt"
	"time"
)

//go:embed script/multi_acquire.lua
var multiSource string

// togetherScript takes several locks with the script that takes one.
var togetherScript = newScript("local function take(KEYS, ARGV)\nlocal standard\n" + mintSource + acquireSource +
	"\nend\n" + multiSource)

// round is one try to take all groups.
type round struct {
	groups []group
	o      MultiOptions
	wait   bool
	fresh  string // owner of what the context has no owner for
	holds  []*Hold
}

// patienceUnit bounds for how long something is kept from others while
// something else is waited for: one to two of it.
const patienceUnit = time.Second

// run takes the groups in their order and looks at them again when all are
// there. If it fails, nothing is left; again says whether another round may fare better.
func (r *round) run(ctx context.Context) (again bool, err error) {
	r.holds = nil
	for i, g := range r.groups {
		again, err = r.take(ctx, g, i > 0)
		if err != nil {
			break
		}
	}
	if err == nil && len(r.groups) > 1 {
		again, err = true, r.verify(ctx)
	}
	if err != nil {
		for i := len(r.holds) - 1; i >= 0; i-- {
			if left := r.holds[i].Release(ctx); left != nil && !Definite(left) {
				again, err = false, fmt.Errorf("%w; %w", err, left)
			}
		}
	}
	return again, err
}

// take takes one group. With others in hand it waits for a limited time only.
func (r *round) take(ctx context.Context, g group, others bool) (again bool, err error) {
	limited := ctx
	if others && r.wait {
		unit := min(g.client.o.PollMax, patienceUnit)
		limit := g.client.random.between(unit, 2*unit)
		if r.o.Lease > 0 {
			limit = min(limit, r.o.Lease/2/time.Duration(len(r.groups)))
		}
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	holds, err := r.get(limited, g)
	r.holds = append(r.holds, holds...)
	return Definite(err) && (errors.Is(err, ErrHeld) || limited.Err() != nil || outcomeOf(err) == notExecuted), err
}

func (r *round) get(ctx context.Context, g group) ([]*Hold, error) {
	if g.together() {
		return newBundle(ctx, g, r).run(ctx)
	}
	m := &Mutex{client: g.client, name: g.names[0], fenced: g.fence}
	o := AcquireOptions{Owner: r.owner(ctx, g.client, m.name), Lease: r.o.Lease}
	acquire := m.TryAcquire
	if r.wait {
		acquire = m.Acquire
	}
	h, err := acquire(ctx, o)
	if err != nil {
		return nil, err
	}
	return []*Hold{h}, nil
}

// owner is who is to hold the lock: who holds it already according to ctx, or somebody new.
func (r *round) owner(ctx context.Context, c *Client, name string) string {
	if r.o.Owner != "" {
		return r.o.Owner
	}
	if owner, ok := ctx.Value(ownerKey{c, name}).(string); ok {
		return owner
	}
	return r.fresh
}

// verify prolongs each lock by its hold: that a lock was there some time ago
// proves nothing, and to prolong it by its name alone might be to prolong another's.
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
	client    *Client
	claims    []claim
	lease     time.Duration
	auto      bool
	wait      bool
	uncertain bool
	grants    []grant
}

func newBundle(ctx context.Context, g group, r *round) *bundle {
	b := &bundle{client: g.client, lease: r.o.Lease, auto: r.o.Lease == 0, wait: r.wait}
	if b.auto {
		b.lease = g.client.o.Lease
	}
	id, waits := g.client.random.id(), ""
	if r.wait {
		waits = g.client.queues.notifyMode(ctx)
	}
	for _, name := range g.names {
		owner := r.owner(ctx, g.client, name)
		b.claims = append(b.claims, claim{
			name: name, owner: owner, id: id, lease: milliseconds(b.lease), notify: waits, fence: g.fence,
		})
	}
	return b
}

func (b *bundle) run(ctx context.Context) ([]*Hold, error) {
	err := checkLease(b.lease)
	switch {
	case err != nil:
		return nil, err
	case b.wait:
		err = b.client.await(ctx, "", b.turn)
	default:
		err = b.client.now(ctx, b.turn)
	}
	if err != nil && b.uncertain {
		err = b.client.undo(ctx, err, b.back)
	}
	if err != nil {
		return nil, err
	}
	holds := make([]*Hold, len(b.claims))
	for i, cl := range b.claims {
		a := &attempt{client: b.client, claim: cl, lease: b.lease, auto: b.auto, uncertain: b.uncertain}
		holds[i] = newHold(ctx, a, b.grants[i])
	}
	return holds, nil
}

// back gives every lock of the bundle back. What is not a lock was not taken.
func (b *bundle) back(ctx context.Context) error {
	for i := len(b.claims) - 1; i >= 0; i-- {
		if _, err := b.client.store.release(ctx, b.claims[i]); err != nil && !errors.Is(err, ErrForeign) {
			return err
		}
	}
	return nil
}

// turn asks once.
func (b *bundle) turn(ctx context.Context) (turn, error) {
	sent := time.Now()
	value, err := b.client.node.take(ctx, b.request())
	if err != nil {
		err = crossSlot(err)
		// One script may have taken some before it met what it cannot take.
		b.uncertain = b.uncertain || outcomeOf(err) != notExecuted && !errors.Is(err, ErrCrossSlot)
		return turn{}, err
	}
	list, _ := value.([]any)
	switch {
	case len(list) == 3 && integer(list[0]) == 0:
		i := min(max(integer(list[1]), 1), len(b.claims)) - 1
		left := time.Duration(integer(list[2])) * time.Millisecond
		return turn{left: left, why: ErrHeld, other: b.claims[i].freeChannel()}, nil
	case len(list) != len(b.claims)+1:
		return turn{}, &requestError{rejected, fmt.Errorf("locks taken together: %w", ErrReleased)}
	}
	b.grants = b.grants[:0]
	for i, cl := range b.claims {
		g, err := grantOf(cl, list[i+1], sent)
		if err != nil {
			b.uncertain = true
			return turn{}, err
		}
		b.grants = append(b.grants, g)
	}
	if time.Until(sent.Add(validity(b.lease))) <= 0 {
		b.uncertain = true
		return turn{}, &requestError{rejected, errors.New("the answer came after the lease was over; ask for a longer one")}
	}
	return turn{done: true}, nil
}

// request is the run of the script for all claims.
func (b *bundle) request() call {
	c := call{script: togetherScript, args: []any{len(b.claims)}}
	for _, cl := range b.claims {
		c.keys = append(c.keys, cl.tombstoneKey())
	}
	for _, cl := range b.claims {
		c.keys = append(c.keys, cl.name, cl.tombstoneKey())
		if b.client.o.Tokens || cl.fence {
			c.keys = append(c.keys, cl.tokenKey())
		}
		c.args = append(c.args, cl.id, cl.lease, cl.owner, cl.flags())
	}
	return c
}
