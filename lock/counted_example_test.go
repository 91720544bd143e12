package lock_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// At most ten programs at a time; the permit of one that crashes expires.
func ExamplePermitSemaphore() {
	ctx := context.Background()
	c, err := lock.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}), lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close(ctx) }()
	slots := c.PermitSemaphore("imports")
	if _, err := slots.TrySetPermits(ctx, 10); err != nil {
		fmt.Println(err)
		return
	}
	permit, err := slots.Acquire(ctx, 1, lock.PermitOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = permit.Release(ctx) }()
	fmt.Println("work until", permit.Deadline(), "or until permit.Context() ends")
}

// Two accounts are locked as one, in whatever order they are named.
func ExampleClient_Multi() {
	ctx := context.Background()
	c, err := lock.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}), lock.Options{Tokens: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close(ctx) }()
	accounts, err := c.Multi("account:7", "account:3")
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := accounts.Acquire(ctx, lock.MultiOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()
	fmt.Println("tokens", hold.Token("account:3"), hold.Token("account:7"))
}
