package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// held is a hold of any kind of lock of package lock.
type held interface {
	Deadline() time.Time
	Renew(ctx context.Context) error
	Release(ctx context.Context) error
	Context() context.Context
}

// taker asks for a lock of one kind.
type acquireFunc func(ctx context.Context, c *lock.Client, a Ask) (held, error)

// taken is what both kinds of a lock's methods come to.
type acquirer interface {
	Acquire(ctx context.Context, o lock.AcquireOptions) (*lock.Hold, error)
	TryAcquire(ctx context.Context, o lock.AcquireOptions) (*lock.Hold, error)
}

// holds takes a lock whose stays are of the type lock.Hold.
func acquireHold(of func(c *lock.Client, a Ask) acquirer, sole bool) acquireFunc {
	return func(ctx context.Context, c *lock.Client, a Ask) (held, error) {
		l := of(c, a)
		take := l.TryAcquire
		if a.Wait {
			take = l.Acquire
		}
		h, err := take(ctx, lock.AcquireOptions{Owner: a.Owner, Lease: a.Lease, NonReentrant: sole})
		if err != nil {
			return nil, err
		}
		if a.Mode == "read" {
			return readHold{h}, nil
		}
		return h, nil
	}
}

// reading is a hold of a reader. What it has is the token of the last writer, and
// no number of its own that grows with its grant: to the harness it has none.
type readHold struct{ *lock.Hold }

// Token is 0.
func (readHold) Token() uint64 { return 0 }

// kindSpecs are the other kinds of lock of package lock. The semaphores have one
// permit, so that they exclude as a mutex does, unless the workload is one of semaphores.
func kindSpecs() []Spec {
	one := []string{Single, Replicated, Sentinel, Sharded}
	row := func(name, doc, source string, take acquireFunc) Spec {
		return Spec{
			Name: name, Doc: doc, Source: source, Topologies: one, Fenced: true, Reentrant: true,
			PersistentKeys: tokenKey, Definite: lock.Definite, Code: lockCode,
			Open: func(s Setup, notify func(Reply)) (Locker, error) {
				return openLock(s, notify, take, func(all []redis.UniversalClient, o lock.Options) (*lock.Client, error) {
					return lock.New(all[0], o)
				})
			},
		}
	}
	fair := row("fair",
		"package lock's fair mutex: first come, first served by the server's clock, handed over within the server.",
		"Redisson's fair lock, with heartbeats of seconds (redisson#3004, #1104)",
		acquireHold(func(c *lock.Client, a Ask) acquirer { return c.FairMutex(a.Key) }, false))
	sole := row("non-reentrant", "package lock's mutex for owners that must not hold it twice.",
		"Redisson's non-reentrant lock (redisson#4468)",
		acquireHold(func(c *lock.Client, a Ask) acquirer { return c.Mutex(a.Key) }, true))
	sole.Reentrant = false
	spin := row("spin", "package lock's spin mutex: who waits asks again and again, without a subscription.",
		"Redisson's spin lock", acquireHold(func(c *lock.Client, a Ask) acquirer { return c.SpinMutex(a.Key) }, false))
	sides := row("readers-writer",
		"package lock's readers-writer lock: mode read or write; a workload that names none writes.",
		"Redisson's RReadWriteLock", acquireHold(readOrWrite, false))
	several := row("multi", "package lock's multi-lock: two keys under one tag, taken by one script, all or none.",
		"Redisson's RMultiLock (redisson#2172)", acquireMulti)
	several.PersistentKeys = func(key string) []string {
		names := multiKeys(key)
		return []string{names[0] + ":token", names[1] + ":token"}
	}
	plain := row("semaphore", "package lock's semaphore, without a lease: what a dead holder had stays out. "+
		"One permit, unless the workload has more.",
		"Redisson's RSemaphore", acquirePermits)
	leased := row("permits", "package lock's semaphore of leased permits. One permit, unless the workload has more.",
		"Redisson's RPermitExpirableSemaphore", acquireLeasedPermits)
	for _, s := range []*Spec{&plain, &leased} {
		s.Fenced, s.Reentrant, s.Permits = false, false, true
		s.PersistentKeys = func(key string) []string { return []string{key} }
	}
	return []Spec{fair, sole, spin, sides, several, plain, leased}
}

// tokenKey is what a lock that mints tokens leaves behind.
func tokenKey(key string) []string { return []string{"{" + key + "}:token"} }

func readOrWrite(c *lock.Client, a Ask) acquirer {
	if a.Mode == "read" {
		return c.RW(a.Key).Read()
	}
	return c.RW(a.Key).Write()
}

// parts are the keys of a multi-lock: one slot of a cluster has both.
func multiKeys(key string) [2]string { return [2]string{"{" + key + "}:a", "{" + key + "}:b"} }

// keyOf is the harness's key of a lock whose name package lock tells of.
func keyOf(name string) string {
	if key, ok := strings.CutPrefix(name, "{"); ok {
		for _, part := range []string{"}:a", "}:b"} {
			if key, ok := strings.CutSuffix(key, part); ok {
				return key
			}
		}
	}
	return name
}

// several is a hold of both parts, with the token of the first.
type multiHold struct{ *lock.MultiHold }

// Token is the fencing number.
func (s multiHold) Token() uint64 { return s.MultiHold.Token(s.Names()[0]) }

func acquireMulti(ctx context.Context, c *lock.Client, a Ask) (held, error) {
	names := multiKeys(a.Key)
	m, err := c.Multi(names[0], names[1])
	if err != nil {
		return nil, err
	}
	take := m.TryAcquire
	if a.Wait {
		take = m.Acquire
	}
	h, err := take(ctx, lock.MultiOptions{Owner: a.Owner, Lease: a.Lease, Atomic: true})
	if err != nil {
		return nil, err
	}
	return multiHold{h}, nil
}

// withPermits has take find the limit's permits there, whoever lost them.
func withPermits(ctx context.Context, limit int, s interface {
	TrySetPermits(ctx context.Context, n int) (bool, error)
}, take func() (*lock.Permits, error)) (held, error) {
	p, err := take()
	if errors.Is(err, lock.ErrAbsent) {
		if _, err = s.TrySetPermits(ctx, limit); err == nil {
			p, err = take()
		}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func acquirePermits(ctx context.Context, c *lock.Client, a Ask) (held, error) {
	s := c.Semaphore(a.Key)
	return withPermits(ctx, a.Limit, s, func() (*lock.Permits, error) {
		if a.Wait {
			return s.Acquire(ctx, a.Permits)
		}
		return s.TryAcquire(ctx, a.Permits)
	})
}

func acquireLeasedPermits(ctx context.Context, c *lock.Client, a Ask) (held, error) {
	s := c.PermitSemaphore(a.Key)
	return withPermits(ctx, a.Limit, s, func() (*lock.Permits, error) {
		if a.Wait {
			return s.Acquire(ctx, a.Permits, lock.PermitOptions{Lease: a.Lease})
		}
		return s.TryAcquire(ctx, a.Permits, lock.PermitOptions{Lease: a.Lease})
	})
}

// grantOf is what the harness is told of h.
func grantOf(h held) Grant {
	g := Grant{Deadline: h.Deadline()}
	if t, is := h.(interface{ Token() uint64 }); is {
		g.Token = t.Token()
	}
	n, counts := h.(interface{ Count() int })
	if _, permits := h.(*lock.Permits); counts && !permits { // of permits, it is how many they are
		g.Count = n.Count()
	}
	return g
}

// permitOwners tells of permits, which do not know whose they are, as openLock does of holds.
type permitOwners struct {
	mu  sync.Mutex
	ids map[*lock.Permits]holdID
}

// follow tells notify if p is lost, however early, and remembers whose it is.
func (o *permitOwners) follow(p *lock.Permits, id holdID, notify func(Reply)) {
	o.mu.Lock()
	o.ids[p] = id
	o.mu.Unlock()
	context.AfterFunc(p.Context(), func() {
		o.mu.Lock()
		delete(o.ids, p)
		o.mu.Unlock()
		if errors.Is(context.Cause(p.Context()), lock.ErrLost) {
			notify(Reply{Event: "lost", Key: id.key, Owner: id.owner, until: p.Deadline()})
		}
	})
}

// renewed tells notify of a renewal of p.
func (o *permitOwners) renewed(p *lock.Permits, notify func(Reply)) {
	o.mu.Lock()
	id, known := o.ids[p]
	o.mu.Unlock()
	if known {
		notify(Reply{Event: "renewed", Key: id.key, Owner: id.owner, until: p.Deadline()})
	}
}
