package simtest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
)

var errUndone = errors.New("granted by too few masters")

// quorum is RedLock on five masters.
type quorum struct {
	masters []*redis.Client
	rand    *rand.Rand
	bug     string
}

var quorumKind = kind{name: "quorum", open: func(s client.Setup, bug string, _ func(client.Reply)) client.Locker {
	l := &quorum{rand: rand.New(rand.NewPCG(s.Seed, 7)), bug: bug}
	for _, addr := range s.Endpoints.Addrs {
		l.masters = append(l.masters, server(s, addr))
	}
	return l
}}

// each runs do on every master at once and counts where it succeeded and where it failed.
func (l *quorum) each(do func(m *redis.Client) (bool, error)) (yes, failed int) {
	type vote struct {
		yes bool
		err error
	}
	votes := make(chan vote)
	for _, m := range l.masters {
		go func() {
			ok, err := do(m)
			votes <- vote{ok, err}
		}()
	}
	for range l.masters {
		switch v := <-votes; {
		case v.err != nil:
			failed++
		case v.yes:
			yes++
		}
	}
	return yes, failed
}

func (l *quorum) Acquire(ctx context.Context, a client.Acquire) (g client.Grant, err error) {
	need := len(l.masters)/2 + 1
	switch l.bug {
	case "one vote":
		need = 1
	case "two votes":
		need = 2
	}
	undone := false
	err = poll(ctx, a, time.Duration(20+l.rand.IntN(40))*time.Millisecond, func() (bool, error) {
		start := time.Now()
		sent := context.WithoutCancel(ctx)
		yes, failed := l.each(func(m *redis.Client) (bool, error) { return m.SetNX(sent, a.Key, a.Owner, a.Lease).Result() })
		validity := a.Lease - time.Since(start) - a.Lease/100 - 2*time.Millisecond
		if l.bug == "no validity" {
			start, validity = time.Now(), a.Lease
		}
		if yes >= need && validity > 0 {
			g = client.Grant{Deadline: start.Add(a.Lease - a.Lease/100 - 2*time.Millisecond)}
			return true, nil
		}
		undone = undone || yes > 0 || failed > 0
		if l.bug == "no rollback" {
			return false, nil
		}
		if _, failed := l.release(sent, a.Key, a.Owner); failed > len(l.masters)-need && yes > 0 {
			return false, fmt.Errorf("%d masters did not reply", failed)
		}
		return false, nil
	})
	if undone && errors.Is(err, errHeld) {
		err = fmt.Errorf("%w: %w", err, errUndone)
	}
	return g, err
}

func (l *quorum) release(ctx context.Context, key, owner string) (yes, failed int) {
	return l.each(func(m *redis.Client) (bool, error) {
		n, err := m.Eval(ctx, compareAndDelete, []string{key}, owner).Int()
		return n > 0, err
	})
}

func (l *quorum) Release(ctx context.Context, h client.Hold) (int, error) {
	switch yes, failed := l.release(context.WithoutCancel(ctx), h.Key, h.Owner); {
	case yes > 0:
		return 0, nil
	case failed > 0:
		return 0, fmt.Errorf("%d masters did not reply", failed)
	}
	return 0, errNotOwner
}

func (l *quorum) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

func (l *quorum) Close(context.Context) (err error) {
	for _, m := range l.masters {
		err = errors.Join(err, m.Close())
	}
	return err
}
