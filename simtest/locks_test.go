package simtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/simtest"
	"github.com/lockchaos/lockchaos/topology"
)

// The locks of these tests are written as users write them, with go-redis. Each has a name for every bug that can be
// planted in it; "" is the correct lock.

var errNotOwner = errors.New("not the owner")

// TestMain keeps go-redis from logging the connections that faults cut.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	m.Run()
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// kind is how to open one of these locks.
type kind struct {
	name string
	open func(s client.Setup, bug string, notify func(client.Reply)) client.Locker
	can  promise.Set
}

// lock is the lock with a bug.
func (k kind) lock(bug string) simtest.Lock {
	return simtest.Lock{
		Name: k.name, Can: k.can,
		Open: func(s client.Setup, notify func(client.Reply)) (client.Locker, error) {
			return k.open(s, bug, notify), nil
		},
		Code: func(err error) string {
			switch {
			case errors.Is(err, errHeld):
				return "held"
			case errors.Is(err, errNotOwner):
				return "not-owner"
			}
			return ""
		},
		Definite: func(err error) bool { return errors.Is(err, errNotOwner) },
		Undone:   func(err error) bool { return errors.Is(err, errUndone) },
	}
}

// server connects to one server.
func server(s client.Setup, addr string) *redis.Client {
	return redis.NewClient(options(s, addr).Simple())
}

// options are how to connect to servers.
func options(s client.Setup, addrs ...string) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs: addrs, Password: s.Endpoints.Password, Dialer: s.Dial, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: 100 * time.Millisecond, ReadTimeout: time.Second, WriteTimeout: time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// single is a lock whose keys are each on one server.
type single struct {
	rdb redis.UniversalClient
	bug string
}

func newSingle(s client.Setup, bug string) single {
	o := options(s, s.Endpoints.Addrs...)
	o.IsClusterMode = s.Endpoints.Kind == topology.Sharded
	if bug == "blocks its only connection" {
		o.PoolSize, o.MaxActiveConns = 1, 1
	}
	if !o.IsClusterMode {
		o.Addrs = o.Addrs[:1]
	}
	return single{redis.NewUniversalClient(o), bug}
}

func (l single) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

func (l single) Close(context.Context) error { return l.rdb.Close() }

// eval runs a script on a key. A command that was sent is not canceled.
func (l single) eval(ctx context.Context, script string, key string, args ...any) (int, error) {
	return l.rdb.Eval(context.WithoutCancel(ctx), script, []string{key}, args...).Int()
}

var errLate = errors.New("the lease was over when the reply came")

// poll calls try until it succeeds, fails, or the wait ends. A grant whose lease is over is none.
func poll(ctx context.Context, a client.Acquire, every time.Duration, try func() (bool, error)) error {
	for {
		start := time.Now()
		ok, err := try()
		if ok && err == nil && a.Lease > 0 && time.Since(start) >= a.Lease {
			err = errLate
		}
		if ok || err != nil {
			return err
		}
		if a.Wait == 0 {
			return errHeld
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return errHeld
		}
	}
}

// granted is the grant of a lease that was requested at start.
func granted(start time.Time, lease time.Duration) client.Grant {
	return client.Grant{Deadline: start.Add(lease)}
}
