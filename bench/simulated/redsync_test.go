package simulated

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/simtest"
)

// TestRedsync: redsync ends on simulated servers as adapters/redsync/expect.tsv says for real ones.
func TestRedsync(t *testing.T) {
	explore(t, redsyncLock(), []expectation{
		{scenario: "redlock-contention"},
		{scenario: "redlock-two-masters-down"},
		{scenario: "redlock-slow-majority"},
		{scenario: "redlock-replies-late"},
		{scenario: "redlock-partitioned-holder"},
		{scenario: "redlock-jitter"},
		{scenario: "swarm"},
		{scenario: "redlock-restart-empty", unsafe: true}, // a master that restarts empty grants again
	})
}

func redsyncLock() simtest.Lock {
	return simtest.Lock{
		Name: "redsync",
		Open: func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
			r := newRival(s)
			var pools []rsredis.Pool
			for _, rdb := range r.rdbs {
				pools = append(pools, goredis.NewPool(rdb))
			}
			return redsyncLocker{rival: r, rs: redsync.New(pools...)}, nil
		},
		Definite: definite,
		Code:     code,
	}
}

type redsyncLocker struct {
	*rival
	rs *redsync.Redsync
}

// Acquire draws the value and the delays of the library from the run's seed: its own make each run another one.
func (l redsyncLocker) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	m := l.rs.NewMutex(a.Key, redsync.WithExpiry(a.Lease), redsync.WithTries(1<<20), redsync.WithValue(a.Owner),
		redsync.WithRetryDelayFunc(func(int) time.Duration {
			return time.Duration(50+l.rand.IntN(200)) * time.Millisecond
		}))
	ctx, cancel := context.WithTimeout(ctx, a.Wait)
	defer cancel()
	err := m.LockContext(ctx)
	var taken *redsync.ErrTaken
	switch {
	case errors.As(err, &taken):
		return client.Grant{}, errHeld
	case err != nil:
		return client.Grant{}, err
	}
	l.held[a.Owner] = m
	return client.Grant{Deadline: m.Until()}, nil
}

func (l redsyncLocker) Release(ctx context.Context, h client.Hold) (int, error) {
	m, ok := l.held[h.Owner].(*redsync.Mutex)
	delete(l.held, h.Owner)
	if !ok {
		return 0, client.ErrNotHeld
	}
	_, err := m.UnlockContext(ctx)
	var taken *redsync.ErrTaken
	if errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.As(err, &taken) {
		return 0, client.ErrNotHeld
	}
	return 0, err
}

// newRand is the random source of a client of a run.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
