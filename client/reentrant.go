package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// reentrant is this project's mutex on one master, alone or behind Sentinel.
var reentrantSpec = Spec{
	Name: "reentrant",
	Doc: "package lock's reentrant mutex: a hash with owner and count, Lua scripts, watchdog, pub/sub, " +
		"fencing tokens.",
	Source:     "Redisson's RLock, made idempotent (redisson#7367)",
	Topologies: []string{Single, Replicated, Sentinel, Sharded},
	Fenced:     true, Reentrant: true,
	PersistentKeys: tokenKey,
	Open:           openReentrant,
	Definite:       lock.Definite,
	Code:           lockCode,
}

func openReentrant(s Setup, notify func(Reply)) (Locker, error) {
	return openLock(s, notify, mutexes, func(all []redis.UniversalClient, o lock.Options) (*lock.Client, error) {
		return lock.New(all[0], o)
	})
}

// mutexes takes plain mutexes.
var mutexes = acquireHold(func(c *lock.Client, a Ask) acquirer { return c.Mutex(a.Key) }, false)

// library is package lock behind the harness's words. It remembers the holds
// of this client by key and owner: the innermost one is released first.
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

func openLock(
	s Setup, notify func(Reply), take acquireFunc, open func([]redis.UniversalClient, lock.Options) (*lock.Client, error),
) (Locker, error) {
	tell := func(event string) func(h *lock.Hold) {
		return func(h *lock.Hold) {
			notify(Reply{Event: event, Key: keyOf(h.Name()), Owner: h.Owner(), until: h.Deadline()})
		}
	}
	permits := &permitOwners{ids: map[*lock.Permits]holdID{}}
	options := lock.Options{
		Tokens: true, // the reports show what fencing would have refused
		Rand:   rand.NewPCG(s.Seed, 1),
		OnLost: tell("lost"), OnRenewed: tell("renewed"),
		OnPermitsRenewed: func(p *lock.Permits) { permits.renewed(p, notify) },
	}
	if err := apply(s.Options, &options); err != nil {
		return nil, err
	}
	conns, err := connect(s)
	if err != nil {
		return nil, err
	}
	c, err := open(conns, options)
	if err != nil {
		return nil, errors.Join(err, closeAll(conns))
	}
	return &library{
		conns: conns, lock: c, acquire: take, notify: notify, permits: permits, holds: map[holdID][]held{},
	}, nil
}

// Acquire takes the lock.
func (l *library) Acquire(ctx context.Context, a Ask) (Grant, error) {
	h, err := l.acquire(ctx, l.lock, a)
	if err != nil {
		return Grant{}, err
	}
	id := holdID{a.Key, a.Owner}
	l.mu.Lock()
	l.holds[id] = append(l.holds[id], h)
	l.mu.Unlock()
	if p, is := h.(*lock.Permits); is {
		l.permits.follow(p, id, l.notify)
	}
	return grantOf(h), nil
}

// Renew prolongs the innermost hold.
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

// Release gives the innermost hold back.
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

// Close gives up every connection; what is held is left to its lease.
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

// lockCode is a short word for an error of package lock.
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
