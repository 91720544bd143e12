package locktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock"
)

// fenced is a Locker on the mutex with fencing tokens.
type fenced struct{ locks *lock.Client }

func (m fenced) mutex(name string) *lock.FencedMutex {
	return m.locks.FencedMutex(name, lock.WithReentry())
}

func (m fenced) Acquire(ctx context.Context, name string, o locktest.AcquireOptions) (locktest.Hold, error) {
	h, err := m.mutex(name).Acquire(ctx, lock.WithOwner(o.Owner), lock.WithLease(o.Lease))
	if err != nil {
		return nil, err // a nil *Hold would not be a nil Hold
	}
	return h, nil
}

func (m fenced) TryAcquire(ctx context.Context, name string, o locktest.AcquireOptions) (locktest.Hold, error) {
	h, err := m.mutex(name).TryAcquire(ctx, lock.WithOwner(o.Owner), lock.WithLease(o.Lease))
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (m fenced) Close(ctx context.Context) error { return m.locks.Close(ctx) }

// A test of a lock: how to connect, and its claims.
func ExampleRun() {
	test := func(t *testing.T) {
		locktest.Run(t, locktest.Spec{
			Topology: locktest.Single,
			Lease:    3 * time.Second,
			ErrHeld:  lock.ErrHeld, ErrLost: lock.ErrLost,
			Renews: true, ReportsLoss: true, Idempotent: true, Reentrant: true, Fenced: true,
			Open: func(t testing.TB, addrs []string) locktest.Locker {
				locks, err := lock.New(locktest.Dial(t, addrs[0]), lock.Options{Lease: 3 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				return fenced{locks}
			},
			LeftKeys: func(name string) []string { return []string{"*:token", "*:tombstone:*"} },
		})
	}
	_ = test // func TestFencedMutex(t *testing.T)
}
