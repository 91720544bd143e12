package samplelocks

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

func redLock() Lock {
	return Lock{
		Name:   "redlock",
		Quorum: true,
		Can:    promise.Try | promise.Renew,
		Bugs: map[string]string{
			"minority":        "two masters of five are enough",
			"votes-are-free":  "the validity is not reduced by the time that the votes took",
			"keeps-minority":  "a minority of votes is not released",
			"releases-oks":    "a failed acquire releases only where the reply was yes",
			"renews-minority": "a renewal needs only one master",
		},
		open: func(b base) client.Locker { return &red{b} },
	}
}

// red is plain on several masters.
type red struct{ base }

// each calls f for all masters at the same time and returns how often f reported true.
func (l *red) each(f func(i int) bool) int {
	var wg sync.WaitGroup
	yes := make([]bool, len(l.masters))
	for i := range l.masters {
		wg.Go(func() { yes[i] = f(i) })
	}
	wg.Wait()
	n := 0
	for _, y := range yes {
		if y {
			n++
		}
	}
	return n
}

func (l *red) drift(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

func (l *red) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	for {
		start := time.Now()
		granted := make([]bool, len(l.masters))
		n := l.each(func(i int) bool {
			one, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			ok, err := l.masters[i].SetNX(one, a.Key, a.Owner, a.Lease).Result()
			granted[i] = err == nil && ok
			return granted[i]
		})
		need := len(l.masters)/2 + 1
		if l.bug == "minority" {
			need--
		}
		deadline := start.Add(a.Lease - l.drift(a.Lease))
		if l.bug == "votes-are-free" {
			deadline = time.Now().Add(a.Lease - l.drift(a.Lease))
		}
		if n >= need && time.Now().Before(deadline) {
			return client.Grant{Deadline: deadline}, nil
		}
		l.rollback(a, granted)
		if a.Wait == 0 {
			return client.Grant{}, errUnknown
		}
		select {
		case <-time.After(5*time.Millisecond + rand.N(60*time.Millisecond)):
		case <-ctx.Done():
			return client.Grant{}, errUnknown
		}
	}
}

func (l *red) rollback(a client.Acquire, granted []bool) {
	if l.bug == "keeps-minority" {
		return
	}
	ctx, cancel := cleanup()
	defer cancel()
	l.each(func(i int) bool {
		if l.bug == "releases-oks" && !granted[i] {
			return false
		}
		_, err := run(ctx, l.masters[i], deleteIfMine, []string{a.Key}, a.Owner)
		return err == nil
	})
}

func (l *red) Renew(ctx context.Context, h client.Hold, lease time.Duration) (client.Grant, error) {
	start := time.Now()
	n, gone := l.askAll(func(i int) (int, error) {
		one, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		return run(one, l.masters[i], renewIfMine, []string{h.Key}, h.Owner, ms(lease))
	})
	need := len(l.masters)/2 + 1
	if l.bug == "renews-minority" {
		need = 1
	}
	switch {
	case n >= need:
		return valid(start.Add(lease-l.drift(lease)), nil)
	case gone >= need:
		return client.Grant{}, client.ErrNotHeld
	}
	return client.Grant{}, errUnknown
}

func (l *red) Release(ctx context.Context, h client.Hold) (int, error) {
	n, gone := l.askAll(func(i int) (int, error) {
		return run(ctx, l.masters[i], deleteIfMine, []string{h.Key}, h.Owner)
	})
	switch need := len(l.masters)/2 + 1; {
	case n >= need:
		return 0, nil
	case gone >= need:
		return 0, client.ErrNotHeld
	}
	return 0, errUnknown
}

// askAll asks each master about a hold, and returns how many had it, and how many did not have it.
func (l *red) askAll(one func(master int) (int, error)) (had, gone int) {
	missing := make([]bool, len(l.masters))
	had = l.each(func(i int) bool {
		n, err := one(i)
		missing[i] = err == nil && n == 0
		return err == nil && n == 1
	})
	for _, m := range missing {
		if m {
			gone++
		}
	}
	return had, gone
}
