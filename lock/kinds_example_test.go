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
		panic(err) // only bad options are an error; no server was asked yet
	}
	return c
}

// Whoever came first is served first, also among programs that ask less often.
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

// Many read, one writes; and who waits to write is not overtaken by new readers.
func ExampleRW() {
	ctx := context.Background()
	prices := connected().RW("prices").PreferWriters()
	writing, err := prices.Write().Acquire(ctx, lock.AcquireOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Under a write hold the same owner may read, and go on reading after it.
	reading, err := prices.Read().Acquire(writing.Context(), lock.AcquireOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(writing.Release(ctx), reading.Release(ctx))
}

// Permits without a lease: those of a program that dies stay out until somebody
// gives them back.
func ExampleSemaphore() {
	ctx := context.Background()
	licences := connected().Semaphore("licences")
	if _, err := licences.TrySetPermits(ctx, 3); err != nil {
		fmt.Println(err)
		return
	}
	two, err := licences.Acquire(ctx, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = two.Release(ctx) }()
	state, err := licences.State(ctx)
	fmt.Println(state.Free, "of", state.Total, err)
}

// Somebody waits until three others are ready.
func ExampleLatch() {
	ctx := context.Background()
	ready := connected().Latch("ready")
	generation, err := ready.TrySetCount(ctx, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 3 {
		// A participant counts once, however often it says so.
		if _, err := ready.CountDown(ctx, lock.CountDownOptions{Participant: fmt.Sprint("worker-", i)}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(ready.WaitGeneration(ctx, generation))
}

// What a resource needs to refuse a holder who slept past the end of his lease.
func ExampleFence() {
	ctx := context.Background()
	hold, err := connected().FencedMutex("ledger").Acquire(ctx, lock.AcquireOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()
	var ledger lock.Fence // beside the resource, not beside the lock
	err = ledger.Do(hold.Token(), func() error { return nil })
	fmt.Println(err)
}

// A lock for code that knows only sync.Locker.
func ExampleMutex_Locker() {
	var l sync.Locker = connected().Mutex("report").Locker(context.Background(), 0)
	l.Lock()
	defer l.Unlock()
}

// An operator looks who has a lock, and takes it from him.
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
