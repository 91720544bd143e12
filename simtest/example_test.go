package simtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/simtest"
)

// naive is the first lock that many people write: it sets the key if EXISTS has not found it. With atomic it uses SET
// NX.
type naive struct {
	rdb    *redis.Client
	atomic bool
}

var errHeld = errors.New("held by another")

func (l *naive) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	for start := time.Now(); ; start = time.Now() {
		acquired, err := l.try(ctx, a)
		if acquired || err != nil {
			return client.Grant{Deadline: start.Add(a.Lease)}, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return client.Grant{}, errHeld
		}
	}
}

func (l *naive) try(ctx context.Context, a client.Acquire) (bool, error) {
	if l.atomic {
		return l.rdb.SetNX(ctx, a.Key, a.Owner, a.Lease).Result()
	}
	if n, err := l.rdb.Exists(ctx, a.Key).Result(); n > 0 || err != nil {
		return false, err
	}
	return true, l.rdb.Set(ctx, a.Key, a.Owner, a.Lease).Err()
}

func (l *naive) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

func (l *naive) Release(ctx context.Context, h client.Hold) (int, error) {
	return 0, l.rdb.Del(ctx, h.Key).Err()
}

func (l *naive) Close(context.Context) error { return l.rdb.Close() }

func naiveLock(atomic bool) simtest.Lock {
	return simtest.Lock{
		Name: "naive",
		Open: func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
			return &naive{atomic: atomic, rdb: redis.NewClient(&redis.Options{
				Addr: s.Endpoints.Addrs[0], Password: s.Endpoints.Password, Dialer: s.Dial, MaxRetries: -1,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})}, nil
		},
		Definite: func(err error) bool { return errors.Is(err, errHeld) },
	}
}

// TestNaiveLock: without SET NX the lock is unsafe, with it the lock is safe.
func TestNaiveLock(t *testing.T) {
	c := simtest.Config{Scenario: "testdata/contention.yaml", Seeds: 10}
	if r := simtest.Run(t, c, naiveLock(false)); r.Unsafe == 0 {
		t.Errorf("no run without SET NX is unsafe: %+v", r)
	}
	if r := simtest.Run(t, c, naiveLock(true)); r.Unsafe > 0 || r.Safe == 0 {
		t.Errorf("SET NX without faults is not safe: %+v", r)
	}
}

// ExampleTest is a test of a lock on two kinds of servers.
func ExampleTest() {
	_ = func(t *testing.T) { // TestNaiveLock of a user
		simtest.Test(t, simtest.Config{Topologies: []string{"single", "replicated"}}, naiveLock(true))
	}
}
