package simulated

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/simtest"
)

// TestRedislock: on simulated servers bsm/redislock has the verdicts that adapters/redislock/expect.tsv has for real
// ones.
func TestRedislock(t *testing.T) {
	explore(t, redislockLock(), []expectation{
		{scenario: "contention"},
		{scenario: "reply-lost-acquire"},
		{scenario: "reply-lost-release"},
		{scenario: "setnx-crash"},
		{scenario: "swarm-single"},
		{scenario: "key-deleted", unsafe: true}, // the lock is a key at one server
		{scenario: "gc-pause", unsafe: true},    // a stalled holder continues after its lease
	})
}

func redislockLock() simtest.Lock {
	return simtest.Lock{
		Name: "redislock",
		Open: func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
			r := newRival(s)
			return redislockLocker{rival: r, client: redislock.New(r.rdbs[0])}, nil
		},
		Definite: definite,
		Code:     code,
	}
}

type redislockLocker struct {
	*rival
	client *redislock.Client
}

// Acquire sets the token, because the library would draw it from a random source other than the seed of the run.
func (l redislockLocker) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, max(a.Wait, time.Second))
	defer cancel()
	o := redislock.Options{Token: token(a.Owner)}
	if a.Wait > 0 {
		o.RetryStrategy = redislock.LimitRetry(redislock.LinearBackoff(20*time.Millisecond), int(a.Wait/(20*time.Millisecond)))
	}
	lock, err := l.client.Obtain(ctx, a.Key, a.Lease, &o)
	switch {
	case errors.Is(err, redislock.ErrNotObtained):
		return client.Grant{}, errHeld
	case err != nil:
		return client.Grant{}, err
	}
	l.held[a.Owner] = lock
	return client.Grant{}, nil
}

// token returns a token for owner, as long as the library's own.
func token(owner string) string { return (owner + "......................")[:22] }

func (l redislockLocker) Release(ctx context.Context, h client.Hold) (int, error) {
	lock, ok := l.held[h.Owner].(*redislock.Lock)
	delete(l.held, h.Owner)
	if !ok {
		return 0, client.ErrNotHeld
	}
	err := lock.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		err = client.ErrNotHeld
	}
	return 0, err
}
