package lock_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/lockchaos/lockchaos/lock"
)

// Who comes first is served first, even if its program polls less often.
func ExampleFairMutex() {
	ctx := context.Background()
	printer := connected().FairMutex("printer")
	hold, err := printer.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx)
	work(hold.Context())
	waiting, err := printer.Queue(ctx)
	fmt.Println(len(waiting), "are waiting", err)
	// Output: 0 are waiting <nil>
}

// Many read, one writes; a waiting writer is not overtaken by new readers.
func ExampleRW() {
	ctx := context.Background()
	prices := connected().RW("prices", lock.WithReentry()).PreferWriters()
	writing, err := prices.Write().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The writer may read as well, and keeps the read hold when it has released the write hold.
	reading, err := prices.Read().Acquire(ctx, lock.WithOwner(writing.Owner()))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(writing.Release(ctx), reading.Release(ctx))
	// Output: <nil> <nil>
}

// At most five programs at a time, on any number of machines. A permit of a crashed program comes back with its lease.
func ExamplePermitSemaphore() {
	ctx := context.Background()
	imports := connected().PermitSemaphore("imports", lock.WithTotal(5))
	permit, err := imports.Acquire(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer permit.Release(ctx)
	work(permit.Context())
	state, err := imports.State(ctx)
	fmt.Println(state.Free, "of", state.Total, "are free", err)
	// Output: 4 of 5 are free <nil>
}

// Permits without a lease: a dead program's stay held until they are released by force.
func ExampleSemaphore() {
	ctx := context.Background()
	licenses := connected().Semaphore("licenses", lock.WithTotal(3))
	err := licenses.Do(ctx, 2, func(ctx context.Context) error {
		state, err := licenses.State(ctx)
		fmt.Println(state.Free, "of", state.Total, "are free")
		return err
	})
	fmt.Println(err)
	// Output:
	// 1 of 3 are free
	// <nil>
}

// Two accounts are locked as one, in whatever order they are named.
func ExampleMulti() {
	locks := connected()
	accounts, err := lock.Multi(locks.FencedMutex("account:7"), locks.FencedMutex("account:3"))
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := accounts.Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, fenced := hold.Token("account:3")
	fmt.Println(fenced, hold.Release(context.Background()))
	// Output: true <nil>
}

// A seat and two of five network connections, all or none.
func ExamplePermitSemaphore_Permits() {
	locks := connected()
	connections := locks.PermitSemaphore("connections", lock.WithTotal(5))
	both, err := lock.Multi(locks.Mutex("seat:12"), connections.Permits(2))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(both.Do(context.Background(), func(ctx context.Context) error {
		state, err := connections.State(ctx)
		fmt.Println(state.Free, "connections are free")
		return err
	}))
	// Output:
	// 3 connections are free
	// <nil>
}

// One program waits until three others are ready.
func ExampleLatch() {
	ctx := context.Background()
	ready := connected().Latch("ready")
	generation, err := ready.TrySetCount(ctx, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 3 {
		// A participant counts once, however often it calls.
		if _, err := ready.CountDown(ctx, lock.CountDownOptions{Participant: fmt.Sprint("worker-", i)}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(ready.WaitGeneration(ctx, generation))
	// Output: <nil>
}

// A resource in this process that refuses a holder that was paused past the end of its lease.
func ExampleFence() {
	var ledger lock.Fence // belongs to the resource, not to the lock
	err := connected().FencedMutex("ledger").Do(context.Background(), func(ctx context.Context, token int64) error {
		return ledger.Do(token, func() error { return nil })
	})
	fmt.Println(err)
	// Output: <nil>
}

// A lock for code that knows only sync.Locker.
func ExampleMutex_Locker() {
	var l sync.Locker = connected().Mutex("std").Locker(context.Background())
	l.Lock()
	defer l.Unlock()
}

// An operator inspects a lock and releases it by force.
func ExampleMutex_ForceRelease() {
	ctx := context.Background()
	stuck := connected().Mutex("stuck", lock.WithOwner("host-7"), lock.WithMetadata("import of March"))
	if _, err := stuck.Acquire(ctx); err != nil {
		fmt.Println(err)
		return
	}
	state, err := stuck.Inspect(ctx)
	fmt.Println(state.Owner, "has it for:", state.Metadata, err)
	fmt.Println(stuck.ForceRelease(ctx))
	// Output:
	// host-7 has it for: import of March <nil>
	// true <nil>
}
