package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// Waits for a lock for up to five seconds and holds it for as long as the work takes.
func Example() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	locks, err := lock.New(rdb, lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	wait, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	hold, err := locks.FencedMutex("orders").Acquire(wait, lock.AcquireOptions{})
	switch {
	case errors.Is(err, lock.ErrHeld):
		fmt.Println("somebody else is at it")
		return
	case err != nil:
		fmt.Println(err)
		return
	}
	// The work ends when the hold does, and presents its token to the resource.
	work := func(ctx context.Context, token uint64) { _, _ = ctx, token }
	work(hold.Context(), hold.Token())
	if err := hold.Release(context.Background()); err != nil {
		fmt.Println(err)
	}
}

// An even number of masters cannot outvote itself.
func ExampleNewQuorum() {
	_, err := lock.NewQuorum(make([]redis.UniversalClient, 4), lock.Options{})
	fmt.Println(err)
	// Output: make lock client: 4 masters: give an odd number, three or more
}

// Errors either prove that nothing happened, or do not.
func ExampleDefinite() {
	fmt.Println(lock.Definite(lock.ErrHeld))
	fmt.Println(lock.Definite(fmt.Errorf("release: %w", lock.ErrUnknown)))
	// Output:
	// true
	// false
}
