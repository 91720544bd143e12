package locks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/lock"
)

// inspectFunc reports who holds a lock of package lock; see [client.Operator].
type inspectFunc func(ctx context.Context, l *library, key string) (owner string, g client.Grant, err error)

// inspectMutex inspects a mutex whose owners have names. A client that uses contexts knows the holder by its metadata,
// if holds have any.
func inspectMutex(ctx context.Context, l *library, key string) (string, client.Grant, error) {
	ours := l.holds.liveOwners(key)
	return l.inspected(ctx, key, func(s lock.State) (string, error) {
		switch {
		case l.labeled && l.contexts && l.queue != nil && s.Metadata == "":
			return "", checkHandedOver(s, ours)
		case l.labeled && l.contexts:
			return l.labeledOwner(key, s)
		}
		return s.Owner, nil
	})
}

// checkHandedOver judges a held lock without metadata: it was handed over to its owner, which does not know that yet.
// An owner that had a hold before the inspection (ours) knows it, so the metadata should be there.
func checkHandedOver(s lock.State, ours []string) error {
	if slices.Contains(ours, s.Owner) {
		return contradiction("a hold that was granted with metadata is shown without")
	}
	return client.ErrHeld
}

// labeledOwner is the owner in the metadata. Those are of the owner's first hold at the server, so the server cannot
// have more holds than the client has acquired since that one.
func (l *library) labeledOwner(key string, s lock.State) (string, error) {
	owner, _, inner := strings.Cut(s.Metadata, again)
	if all := l.holds.count(key, owner); inner && all > 0 && s.Count > all-strings.Count(s.Metadata, again) {
		return "", contradiction("the metadata of %d holds are those of an inner one: %q", s.Count, s.Metadata)
	}
	return owner, nil
}

// inspectVotes inspects a mutex of several masters: the count and the lease that one of them shows say nothing about
// the others.
func inspectVotes(ctx context.Context, l *library, key string) (string, client.Grant, error) {
	owner, _, err := inspectMutex(ctx, l, key)
	return owner, client.Grant{}, err
}

// inspectAnonymous inspects a mutex whose owners have no names at the server: it knows only the owners of this client
// and owners whose names are in the metadata.
func inspectAnonymous(ctx context.Context, l *library, key string) (string, client.Grant, error) {
	return l.inspected(ctx, key, func(s lock.State) (string, error) {
		name, ours := l.holds.ownerNamed(key, s.Owner)
		switch {
		case ours && l.marks(name) && s.Metadata != name:
			return "", contradiction("a hold that was granted with the metadata %q is shown with %q", name, s.Metadata)
		case ours:
			return name, nil
		case s.Metadata != "":
			owner, _, _ := strings.Cut(s.Metadata, again)
			return owner, nil
		}
		return "", client.ErrHeld
	})
}

// inspected inspects a mutex. name returns the name of the owner that has it, or [ErrHeld] if that is not known.
func (l *library) inspected(ctx context.Context, key string, name func(lock.State) (string, error)) (
	owner string, g client.Grant, err error) {
	s, err := l.lock.Mutex(key).Inspect(ctx)
	if err != nil {
		return "", g, err
	}
	if s.Owner == "" {
		return "", g, client.ErrNotHeld
	}
	if owner, err = name(s); err != nil {
		return "", g, err
	}
	return owner, grantSeen(s.Token, s.Count, s.Remaining), nil
}

// inspectRW inspects a readers-writer lock. Who reads is not reported, because there may be several.
func inspectRW(ctx context.Context, l *library, key string) (string, client.Grant, error) {
	s, err := l.lock.RW(key).Inspect(ctx)
	switch {
	case err != nil:
		return "", client.Grant{}, err
	case s.Writer != "":
		return s.Writer, grantSeen(s.Token, 0, s.Remaining), nil
	case len(s.Readers) > 0:
		return "", client.Grant{}, client.ErrHeld
	}
	return "", client.Grant{}, client.ErrNotHeld
}

// grantSeen is a grant as a server shows it. If remaining is negative, the hold has no end, and the grant no deadline.
func grantSeen(token int64, count int, remaining time.Duration) client.Grant {
	g := client.Grant{Token: uint64(token), Count: count}
	if remaining >= 0 { // it ends now at the earliest: a validity of 0 would say that there is no end
		g.Deadline = time.Now().Add(max(remaining, time.Microsecond))
	}
	return g
}

// ownerNamed is the owner for which this client acquired the hold with that id, and whether there is one.
func (s *holds) ownerNamed(key, id string) (name string, ours bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, list := range s.of { // order does not matter: an id names one hold
		for _, h := range list {
			if h, is := holdOf(h); is && at.Key == key && h.Owner() == id {
				return at.Owner, true
			}
		}
	}
	return "", false
}

// ownerFunc reports how often an owner of this client holds a lock; see [client.Operator].
type ownerFunc func(ctx context.Context, l *library, h client.Hold) (count int, err error)

// queueFunc lists the owners that wait for a lock.
type queueFunc func(ctx context.Context, c *lock.Client, key string) ([]string, error)

// inspectOwner reports how often an owner holds the lock.
func (l *library) inspectOwner(ctx context.Context, h client.Hold) (int, error) {
	count, err := l.owner(ctx, l, h)
	if err == nil && count == 0 {
		err = client.ErrNotHeld
	}
	return count, err
}

// countWaiters reports how many acquires wait in the queue of the lock.
func (l *library) countWaiters(ctx context.Context, key string) (int, error) {
	owners, err := l.queue(ctx, l.lock, key)
	if l.varied { // one acquire may wait twice
		slices.Sort(owners)
		owners = slices.Compact(owners)
	}
	return len(owners), err
}

func inspectRWOwner(ctx context.Context, l *library, h client.Hold) (int, error) {
	s, err := l.lock.RW(h.Key).Inspect(ctx)
	count := s.Readers[h.Owner]
	if s.Writer == h.Owner {
		count += s.Writes
	}
	return count, err
}

// inspectPermits counts the permits of a semaphore that the last acquire of an owner has, and checks that all permits
// that are not held are free.
func inspectPermits(ctx context.Context, l *library, h client.Hold) (count int, err error) {
	s, err := l.semaphore(l.lock, client.Acquire{Key: h.Key}).State(ctx)
	if errors.Is(err, lock.ErrAbsent) {
		return 0, client.ErrNotHeld
	}
	if err != nil {
		return 0, err
	}
	last, _ := l.holds.innermost(client.Hold{Key: h.Key, Owner: h.Owner, Mode: h.Mode})
	p, is := last.(*lock.Permits)
	all := 0
	for _, some := range s.Holds {
		all += some.Permits
		if is && slices.Contains(p.IDs(), some.ID) {
			count += some.Permits
		}
	}
	if s.Free+all != s.Total {
		return 0, contradiction("of %d permits %d are free, and %d held", s.Total, s.Free, all)
	}
	return count, nil
}
