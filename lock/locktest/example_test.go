package locktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/locktest"
)

// myLock is a Locker on a lock of your own.
type myLock struct{ locks *lock.Client }

func (m myLock) mutex(name string) *lock.FencedMutex {
	return m.locks.FencedMutex(name, lock.WithReentry())
}

func (m myLock) Acquire(ctx context.Context, name string, o locktest.AcquireOptions) (locktest.Hold, error) {
	h, err := m.mutex(name).Acquire(ctx, lock.WithOwner(o.Owner), lock.WithLease(o.Lease))
	if err != nil {
		return nil, err // a nil *Hold would not be a nil Hold
	}
	return h, nil
}

func (m myLock) TryAcquire(ctx context.Context, name string, o locktest.AcquireOptions) (locktest.Hold, error) {
	h, err := m.mutex(name).TryAcquire(ctx, lock.WithOwner(o.Owner), lock.WithLease(o.Lease))
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (m myLock) Close(ctx context.Context) error { return m.locks.Close(ctx) }

// A test of a lock of your own: how to connect, and what it claims.
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
				return myLock{locks}
			},
			LeftKeys: func(name string) []string { return []string{"*:token", "*:tombstone:*"} },
		})
	}
	_ = test // in your own project: func TestMyLock(t *testing.T)
}
