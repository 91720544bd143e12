package lock_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// connected is a client of a server on this machine.
func connected() *lock.Client {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
	c, err := lock.New(rdb, lock.Options{})
	if err != nil {
		panic(err) // only bad options are an error; no server is dialed yet
	}
	return c
}

// The first to come is served first, even if its program polls less often.
func ExampleFairMutex() {
	ctx := context.Background()
	queue := connected().FairMutex("printer")
	hold, err := queue.Acquire(ctx, lock.AcquireOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()
	behind, err := queue.Queue(ctx)
	fmt.Println("who waits:", behind, err)
}

// Many read, one writes; a waiting writer is not overtaken by new readers.
func ExampleRW() {
	ctx := context.Background()
	prices := connected().RW("prices").PreferWriters()
	writing, err := prices.Write().Acquire(ctx, lock.AcquireOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Under a write hold the same owner may read, and keep reading after its release.
	reading, err := prices.Read().Acquire(writing.Context(), lock.AcquireOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(writing.Release(ctx), reading.Release(ctx))
}

// Permits without a lease: those of a program that dies stay held until they are released
// by force.
func ExampleSemaphore() {
	ctx := context.Background()
	licenses := connected().Semaphore("licenses")
	if _, err := licenses.TrySetPermits(ctx, 3); err != nil {
		fmt.Println(err)
		return
	}
	two, err := licenses.Acquire(ctx, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = two.Release(ctx) }()
	state, err := licenses.State(ctx)
	fmt.Println(state.Free, "of", state.Total, err)
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
}

// A resource that refuses a holder that was paused past the end of its lease.
func ExampleFence() {
	ctx := context.Background()
	hold, err := connected().FencedMutex("ledger").Acquire(ctx, lock.AcquireOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()
	var ledger lock.Fence // belongs to the resource, not to the lock
	err = ledger.Do(hold.Token(), func() error { return nil })
	fmt.Println(err)
}

// A lock for code that knows only sync.Locker.
func ExampleMutex_Locker() {
	var l sync.Locker = connected().Mutex("report").Locker(context.Background(), 0)
	l.Lock()
	defer l.Unlock()
}

// An operator inspects a lock and releases it by force.
func ExampleMutex_ForceRelease() {
	ctx := context.Background()
	m := connected().Mutex("nightly")
	state, err := m.Inspect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(state.Owner, "has it for another", state.Remaining)
	had, err := m.ForceRelease(ctx)
	fmt.Println(had, err)
}
