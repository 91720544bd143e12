package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/lock"
)

// reentrantSpec is the mutex of package lock on one master, alone or behind Sentinel.
var reentrantSpec = Spec{
	Name: "reentrant",
	Doc: "package lock's reentrant mutex: a hash with owner and count, Lua scripts, watchdog, pub/sub, " +
		"fencing tokens.",
	Source:     "Redisson's RLock, made idempotent (redisson#7367)",
	Topologies: []string{Single, Replicated, Sentinel, Sharded},
	Fenced:     true, Reentrant: true,
	PersistentKeys: tokenKey,
	Open:           opener(newClient, acquireMutex),
	Definite:       lock.Definite,
	Code:           lockCode,
}

//nolint:gochecknoglobals // a function, never changed
var acquireMutex = acquireHold(func(c *lock.Client, a Acquire) acquirer { return c.Mutex(a.Key) }, false)

// library is a [Locker] on package lock. It stores the holds of this client by key
// and owner; the innermost one is released first.
type library struct {
	conns   []redis.UniversalClient
	lock    *lock.Client
	acquire acquireFunc
	notify  func(Reply)
	permits *permitOwners

	mu    sync.Mutex
	holds map[holdID][]held
}

type holdID struct{ key, owner string }

// newClientFunc makes a client of package lock: [newClient] or lock.NewQuorum.
type newClientFunc func(conns []redis.UniversalClient, o lock.Options) (*lock.Client, error)

func newClient(conns []redis.UniversalClient, o lock.Options) (*lock.Client, error) {
	return lock.New(conns[0], o)
}

// opener returns the Open of a [Spec].
func opener(newClient newClientFunc, acquire acquireFunc) func(Setup, func(Reply)) (Locker, error) {
	return func(s Setup, notify func(Reply)) (Locker, error) {
		report := func(event string) func(*lock.Hold) {
			return func(h *lock.Hold) {
				notify(Reply{Event: event, Key: keyOf(h.Name()), Owner: h.Owner(), until: h.Deadline()})
			}
		}
		permits := &permitOwners{ids: map[*lock.Permits]holdID{}}
		options := lock.Options{
			Tokens: true, // the reports show what fencing would have rejected
			Rand:   rand.NewPCG(s.Seed, 1), Order: s.Order,
			OnLost: report(history.Lost), OnRenewed: report(history.Renewed),
			OnPermitsRenewed: func(p *lock.Permits) { permits.renewed(p, notify) },
		}
		if err := apply(s.Options, &options); err != nil {
			return nil, err
		}
		conns, err := connect(s)
		if err != nil {
			return nil, err
		}
		c, err := newClient(conns, options)
		if err != nil {
			return nil, errors.Join(err, closeAll(conns))
		}
		return &library{
			conns: conns, lock: c, acquire: acquire, notify: notify, permits: permits, holds: map[holdID][]held{},
		}, nil
	}
}

// Acquire acquires the lock.
func (l *library) Acquire(ctx context.Context, a Acquire) (Grant, error) {
	h, err := l.acquire(ctx, l.lock, a)
	if err != nil {
		return Grant{}, err
	}
	id := holdID{a.Key, a.Owner}
	l.mu.Lock()
	l.holds[id] = append(l.holds[id], h)
	l.mu.Unlock()
	if p, ok := h.(*lock.Permits); ok {
		l.permits.watch(p, id, l.notify)
	}
	return grantOf(h), nil
}

// Renew renews the innermost hold.
func (l *library) Renew(ctx context.Context, key, owner string) (Grant, error) {
	h := l.innermost(holdID{key, owner})
	if h == nil {
		return Grant{}, ErrNotHeld
	}
	if err := h.Renew(ctx); err != nil {
		return Grant{}, err
	}
	return grantOf(h), nil
}

// Release releases the innermost hold.
func (l *library) Release(ctx context.Context, key, owner string) (int, error) {
	id := holdID{key, owner}
	h := l.innermost(id)
	if h == nil {
		return 0, ErrNotHeld
	}
	err := h.Release(ctx)
	if err == nil || lock.Definite(err) {
		l.forget(id)
	}
	return grantOf(h).Count, err
}

// Close closes every connection; holds are left to their lease.
func (l *library) Close(ctx context.Context) error {
	return errors.Join(l.lock.Close(ctx), closeAll(l.conns))
}

func (l *library) innermost(id holdID) held {
	l.mu.Lock()
	defer l.mu.Unlock()
	holds := l.holds[id]
	if len(holds) == 0 {
		return nil
	}
	return holds[len(holds)-1]
}

func (l *library) forget(id holdID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.holds[id]); n > 1 {
		l.holds[id] = l.holds[id][:n-1]
		return
	}
	delete(l.holds, id)
}

// lockCode is the short word for an error of package lock.
func lockCode(err error) string {
	for _, row := range []struct {
		err  error
		code string
	}{
		{ErrNotHeld, "not-held"}, {lock.ErrUnknown, "unknown"}, {lock.ErrHeld, "held"}, {lock.ErrNotOwner, "not-owner"},
		{lock.ErrLost, "lost"}, {lock.ErrReleased, "released"}, {lock.ErrNoQuorum, "no-quorum"},
		{lock.ErrForeign, "foreign-key"}, {lock.ErrReentered, "reentered"},
		{lock.ErrTooFewReplicas, "too-few-replicas"}, {lock.ErrClosed, "closed"}, {context.DeadlineExceeded, "timeout"},
	} {
		if errors.Is(err, row.err) {
			return row.code
		}
	}
	return "error"
}
