package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/lock"
)

// held is a hold of any kind of lock of package lock.
type held interface {
	Deadline() time.Time
	Renew(ctx context.Context) error
	Release(ctx context.Context) error
	Context() context.Context
}

// acquireFunc acquires a lock of one kind.
type acquireFunc func(ctx context.Context, c *lock.Client, a Acquire) (held, error)

// acquirer is any lock of package lock whose holds are of type lock.Hold.
type acquirer interface {
	Acquire(ctx context.Context, o lock.AcquireOptions) (*lock.Hold, error)
	TryAcquire(ctx context.Context, o lock.AcquireOptions) (*lock.Hold, error)
}

func acquireHold(of func(c *lock.Client, a Acquire) acquirer, nonReentrant bool) acquireFunc {
	return func(ctx context.Context, c *lock.Client, a Acquire) (held, error) {
		l := of(c, a)
		acquire := l.TryAcquire
		if a.Wait > 0 {
			acquire = l.Acquire
		}
		h, err := acquire(ctx, lock.AcquireOptions{Owner: a.Owner, Lease: a.Lease, NonReentrant: nonReentrant})
		if err != nil {
			return nil, err
		}
		if a.Mode == "read" {
			return readHold{h}, nil
		}
		return h, nil
	}
}

// readHold is the hold of a reader. It hides the token, which is that of the last writer
// and does not grow with every grant.
type readHold struct{ *lock.Hold }

// Token is 0: none.
func (readHold) Token() uint64 { return 0 }

// kindSpecs are the other kinds of lock of package lock. A semaphore has one permit, so that
// it excludes as a mutex does, unless the workload is one of semaphores.
func kindSpecs() []Spec {
	row := func(name, doc, source string, acquire acquireFunc) Spec {
		return Spec{
			Name: name, Doc: doc, Source: source, Topologies: []string{Single, Replicated, Sentinel, Sharded},
			Fenced: true, Reentrant: true, PersistentKeys: tokenKey,
			Open: opener(newClient, acquire), Definite: lock.Definite, Code: lockCode,
		}
	}
	fair := row("fair",
		"package lock's fair mutex: first come, first served by the server's clock, handed over within the server.",
		"Redisson's fair lock, with heartbeats of seconds (redisson#3004, #1104)",
		acquireHold(func(c *lock.Client, a Acquire) acquirer { return c.FairMutex(a.Key) }, false))
	nonReentrant := row("non-reentrant", "package lock's mutex for owners that must not hold it twice.",
		"Redisson's non-reentrant lock (redisson#4468)",
		acquireHold(func(c *lock.Client, a Acquire) acquirer { return c.Mutex(a.Key) }, true))
	nonReentrant.Reentrant = false
	spin := row("spin", "package lock's spin mutex: a waiter polls, without a subscription.",
		"Redisson's spin lock", acquireHold(func(c *lock.Client, a Acquire) acquirer { return c.SpinMutex(a.Key) }, false))
	rw := row("readers-writer",
		"package lock's readers-writer lock: mode read or write; a workload without a mode writes.",
		"Redisson's RReadWriteLock", acquireHold(readOrWrite, false))
	multi := row("multi", "package lock's multi-lock: two keys with one hash tag, acquired by one script, all or none.",
		"Redisson's RMultiLock (redisson#2172)", acquireMulti)
	multi.PersistentKeys = func(key string) []string {
		names := multiKeys(key)
		return []string{names[0] + ":token", names[1] + ":token"}
	}
	plain := row("semaphore", "package lock's semaphore without a lease: a crashed holder never returns its permits. "+
		"One permit, unless the workload has more.",
		"Redisson's RSemaphore", acquirePermits)
	leased := row("permits", "package lock's semaphore of leased permits. One permit, unless the workload has more.",
		"Redisson's RPermitExpirableSemaphore", acquireLeasedPermits)
	for _, s := range []*Spec{&plain, &leased} {
		s.Fenced, s.Reentrant, s.Permits = false, false, true
		s.PersistentKeys = func(key string) []string { return []string{key} }
	}
	return []Spec{fair, nonReentrant, spin, rw, multi, plain, leased}
}

// tokenKey is the counter of fencing tokens, which has no TTL.
func tokenKey(key string) []string { return []string{"{" + key + "}:token"} }

func readOrWrite(c *lock.Client, a Acquire) acquirer {
	if a.Mode == "read" {
		return c.RW(a.Key).Read()
	}
	return c.RW(a.Key).Write()
}

func multiKeys(key string) [2]string { return [2]string{"{" + key + "}:a", "{" + key + "}:b"} }

// keyOf is the key in a request for the lock that package lock calls name: the reverse of [multiKeys].
func keyOf(name string) string {
	if key, ok := strings.CutPrefix(name, "{"); ok {
		for _, suffix := range []string{"}:a", "}:b"} {
			if key, ok := strings.CutSuffix(key, suffix); ok {
				return key
			}
		}
	}
	return name
}

// multiHold is a hold of both keys, with the token of the first.
type multiHold struct{ *lock.MultiHold }

// Token is the fencing token.
func (h multiHold) Token() uint64 { return h.MultiHold.Token(h.Names()[0]) }

func acquireMulti(ctx context.Context, c *lock.Client, a Acquire) (held, error) {
	names := multiKeys(a.Key)
	m, err := c.Multi(names[0], names[1])
	if err != nil {
		return nil, err
	}
	acquire := m.TryAcquire
	if a.Wait > 0 {
		acquire = m.Acquire
	}
	h, err := acquire(ctx, lock.MultiOptions{Owner: a.Owner, Lease: a.Lease, Atomic: true})
	if err != nil {
		return nil, err
	}
	return multiHold{h}, nil
}

func acquirePermits(ctx context.Context, c *lock.Client, a Acquire) (held, error) {
	s := c.Semaphore(a.Key)
	return createIfAbsent(ctx, a.Limit, s, func() (*lock.Permits, error) {
		if a.Wait > 0 {
			return s.Acquire(ctx, a.Permits)
		}
		return s.TryAcquire(ctx, a.Permits)
	})
}

func acquireLeasedPermits(ctx context.Context, c *lock.Client, a Acquire) (held, error) {
	s := c.PermitSemaphore(a.Key)
	return createIfAbsent(ctx, a.Limit, s, func() (*lock.Permits, error) {
		if a.Wait > 0 {
			return s.Acquire(ctx, a.Permits, lock.PermitOptions{Lease: a.Lease})
		}
		return s.TryAcquire(ctx, a.Permits, lock.PermitOptions{Lease: a.Lease})
	})
}

// createIfAbsent calls acquire. If the semaphore does not exist, because it is new or its server lost it,
// it creates it with limit permits and retries.
func createIfAbsent(ctx context.Context, limit int, s interface {
	TrySetPermits(ctx context.Context, n int) (bool, error)
}, acquire func() (*lock.Permits, error)) (held, error) {
	p, err := acquire()
	if errors.Is(err, lock.ErrAbsent) {
		if _, err = s.TrySetPermits(ctx, limit); err == nil {
			p, err = acquire()
		}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func grantOf(h held) Grant {
	g := Grant{Deadline: h.Deadline()}
	if t, ok := h.(interface{ Token() uint64 }); ok {
		g.Token = t.Token()
	}
	n, counts := h.(interface{ Count() int })
	if _, permits := h.(*lock.Permits); counts && !permits { // Permits.Count is the number of permits
		g.Count = n.Count()
	}
	return g
}

// permitOwners remembers whose permits they are: unlike lock.Hold, lock.Permits do not know key and owner.
type permitOwners struct {
	mu  sync.Mutex
	ids map[*lock.Permits]holdID
}

// watch remembers the owner of p and reports the loss of p, even if it is lost already.
func (o *permitOwners) watch(p *lock.Permits, id holdID, notify func(Reply)) {
	o.mu.Lock()
	o.ids[p] = id
	o.mu.Unlock()
	context.AfterFunc(p.Context(), func() {
		o.mu.Lock()
		delete(o.ids, p)
		o.mu.Unlock()
		if errors.Is(context.Cause(p.Context()), lock.ErrLost) {
			notify(Reply{Event: history.Lost, Key: id.key, Owner: id.owner, until: p.Deadline()})
		}
	})
}

// renewed reports a renewal of p.
func (o *permitOwners) renewed(p *lock.Permits, notify func(Reply)) {
	o.mu.Lock()
	id, ok := o.ids[p]
	o.mu.Unlock()
	if ok {
		notify(Reply{Event: history.Renewed, Key: id.key, Owner: id.owner, until: p.Deadline()})
	}
}
