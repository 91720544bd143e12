package lock

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Permits are permits of a semaphore, from Acquire until Release. Several goroutines may use it.
type Permits struct {
	leaseKeeper
	pool pool
}

// Count is the number of permits.
func (p *Permits) Count() int { return p.claim.permits }

// IDs are the ids of the permits in [SemaphoreState]: one for each permit of a
// [PermitSemaphore], one for all of them of a [Semaphore].
func (p *Permits) IDs() []string { return p.pool.store.ids(p.claim) }

// Renew extends the permits to their full lease from now on. Its error is [ErrLost] if they are no longer held, and
// [ErrUnknown] if no reply came. It does nothing for permits without a lease.
func (p *Permits) Renew(ctx context.Context) error { return p.Extend(ctx, p.lease) }

// Extend is Renew with another lease, only this time. It never shortens the lease.
func (p *Permits) Extend(ctx context.Context, lease time.Duration) error {
	err := p.Err()
	if err == nil && p.lease > 0 {
		if err = checkLease(lease); err == nil {
			err = p.renew(ctx, lease)
		}
	}
	return failed("renew permits of", p.pool.store.kind(), p.claim.name, err)
}

// Release releases the permits, even if ctx has ended. Its error is [ErrLost] if
// they were no longer held, [ErrReleased] if they were released before: nothing is
// released twice (redisson#5066). After [ErrUnknown] it may be called again.
func (p *Permits) Release(ctx context.Context) error {
	started := p.client.startTime()
	before, err := p.beginRelease()
	if err == nil {
		left, failure := p.client.giveBack(ctx, p.claim)
		if left, err = p.replyAfter(before, left, failure); err == nil {
			err = p.finishRelease(before, left)
		}
	}
	err = failed("release permits of", p.pool.store.kind(), p.claim.name, err)
	p.client.emitClaim(ctx, Released, &p.claim, 0, started, err)
	return err
}

func (p *Permits) onRenewed() {
	p.client.emitClaim(noCall(), Renewed, &p.claim, 0, time.Time{}, nil)
	if p.client.o.OnPermitsRenewed != nil {
		p.client.o.OnPermitsRenewed(p)
	}
}

func (p *Permits) onLost() {
	p.client.emitClaim(noCall(), Lost, &p.claim, 0, time.Time{}, ErrLost)
	if p.client.o.OnPermitsLost != nil {
		p.client.o.OnPermitsLost(p)
	}
}

// permitStore keeps the holds of one kind of semaphore on one master.
type permitStore struct {
	node         *node
	tombstoneTTL int64 // milliseconds
	leased       bool
	fair         bool // leased, with a queue
}

var _ store = (*permitStore)(nil)

func (s *permitStore) kind() string {
	if s.leased {
		return "permits"
	}
	return "semaphore"
}

// permitsKeys is the key of the permits, if they have leases.
func (s *permitStore) permitsKeys(key string) []string {
	if !s.leased {
		return nil
	}
	return []string{permitsKey(key)}
}

// ids are the ids of the permits of c; in a semaphore without leases, c's own id.
func (s *permitStore) ids(c claim) []string {
	if !s.leased {
		return []string{c.id}
	}
	ids := make([]string, c.permits)
	for i := range ids {
		ids[i] = c.id + "." + strconv.Itoa(i+1)
	}
	return ids
}

func (s *permitStore) acquire(ctx context.Context, c claim) (grant, error) {
	kinds := s.node.kinds
	what := wire.Call{
		Script:  kinds.semaphore.acquire,
		Keys:    []string{c.key, c.tombstoneKey()},
		Args:    []any{c.id, c.permits},
		Counted: !s.leased,
	}
	if s.leased {
		what.Script = kinds.permit.acquire
		what.Keys = append(what.Keys, permitsKey(c.key), c.freeChannel())
		what.Args = []any{c.id, c.lease, c.permits}
	}
	if s.fair {
		what.Script = kinds.fairPermit.acquire
		what.Keys = append(what.Keys, queueKeys(c.key)...)
		what.Args = append(what.Args, c.waiterTTL)
	}
	sent := time.Now()
	value, how, err := doCounted(ctx, s.node.DoSafe, what)
	if s.leased && isMigrating(err) {
		how.migrating = true
		value, err = s.acquireMigrating(ctx, c)
	}
	if how.repeated {
		value = int64(codeReleased)
	}
	if err != nil {
		return grant{}, err
	}
	r, err := decode(value, 1)
	switch {
	case err != nil:
		return grant{}, err
	case r.Code == codeOutOfRange:
		return grant{}, &requestError{wire.Rejected, fmt.Errorf("%w: %d of %d permits", ErrPermits, c.permits, r.Int(0))}
	}
	g := grant{ok: r.Code == wire.CodeOK, granted: granted{sent: sent}, why: ErrNoPermits, ttl: -1}
	g.fewerFit = !s.fair && r.Int(0) > 0
	if r.Int(2) > 0 {
		g.why = ErrQueued
	}
	if left := r.Int(1); left > 0 {
		g.ttl = time.Duration(left) * time.Millisecond
	}
	if how.migrating { // messages of the other master do not come
		g.ttl = pollUnsubscribed
	}
	return g, codeError(r)
}

func (s *permitStore) release(ctx context.Context, c claim) (int, error) {
	ids := s.ids(c)
	value, _, err := doCounted(ctx, s.node.Do, s.releaseCall(c.key, c.id, ids))
	if s.leased && isMigrating(err) {
		return s.releaseMigrating(ctx, c, ids)
	}
	if err != nil {
		return 0, err
	}
	r, err := decode(value, 1)
	if r.Code == codeUnsure {
		return 0, errUnsure
	}
	if s.leased && r.Int(0) < int64(len(ids)) || !s.leased && r.Int(1) == 0 {
		return codeNotHeld, err
	}
	return 0, err
}

// releaseCall releases ids, under the id of a hold or of a request.
func (s *permitStore) releaseCall(key, request string, ids []string) wire.Call {
	kinds, channel := s.node.kinds, tagged(key, "free")
	what := wire.Call{
		Script:  kinds.semaphore.release,
		Keys:    []string{key, tombstoneKey(key, request)},
		Args:    append(make([]any, 0, 3+len(ids)), s.tombstoneTTL),
		Counted: !s.leased,
	}
	switch {
	case !s.leased:
		what.Args = append(what.Args, channel)
	case s.fair:
		what.Script = kinds.fairPermit.release
		what.Keys = append(append(what.Keys, permitsKey(key), channel), queueKeys(key)...)
	default:
		what.Script = kinds.permit.release
		what.Keys = append(what.Keys, permitsKey(key), channel)
	}
	for _, id := range ids {
		what.Args = append(what.Args, id)
	}
	return what
}

// renew sends several requests, at the same time, if they would renew more than maxLeased permits at once.
func (s *permitStore) renew(ctx context.Context, claims []claim) []renewal {
	out := make([]renewal, len(claims))
	var wg sync.WaitGroup
	for from := 0; from < len(claims); {
		to, permits := from+1, claims[from].permits
		for to < len(claims) && permits+claims[to].permits <= maxLeased {
			permits += claims[to].permits
			to++
		}
		some, into := claims[from:to], out[from:to]
		wg.Go(func() { copy(into, renewAll(ctx, s.node, some, s.renewCall, s.renewAlone)) })
		from = to
	}
	wg.Wait()
	return out
}

func (s *permitStore) renewCall(claims []claim) wire.Call {
	c := wire.Call{Script: s.node.kinds.permit.renew}
	for _, cl := range claims {
		c.Keys = append(c.Keys, cl.key, permitsKey(cl.key), cl.freeChannel())
		c.Args = append(c.Args, cl.id, cl.lease, cl.permits)
	}
	return c
}
