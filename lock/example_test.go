package lock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// dial connects to one of three servers of the tests; elsewhere it is redis.NewClient(&redis.Options{Addr: "localhost:6379"}).
func dial(server int) *redis.Client { return lock.DialExample(server) }

// connected is a client of that server.
func connected() *lock.Client {
	locks, err := lock.New(dial(0), lock.Options{})
	if err != nil {
		panic(err)
	}
	return locks
}

// work needs the lock; it ends when ctx does.
func work(context.Context) {}

// Work that one program at a time does. The hold is renewed until the work ends.
func Example() {
	locks, err := lock.New(dial(0), lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	err = locks.Mutex("orders").Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("alone") // pass ctx on: it ends if the lock is lost
		return nil
	})
	fmt.Println(err)
	// Output:
	// alone
	// <nil>
}

// The lock, or an error at once: as for a job that the next run may do.
func ExampleMutex_TryAcquire() {
	ctx := context.Background()
	nightly := connected().Mutex("nightly")
	hold, err := nightly.TryAcquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx)
	work(hold.Context())             // ends with the hold
	_, err = nightly.TryAcquire(ctx) // as another program would
	fmt.Println(errors.Is(err, lock.ErrHeld))
	// Output: true
}

// A wait that ends. Unlike a deadline of the context, it does not end the work too.
func ExampleWithWait() {
	ctx := context.Background()
	report := connected().Mutex("report", lock.WithWait(4*time.Second))
	hold, err := report.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx)
	work(hold.Context())
	_, err = report.Acquire(ctx)
	fmt.Println(err)
	// Output: acquire lock "report": the lock is held by another owner: context deadline exceeded
}

// Work that learns that its lock was lost: here an operator takes it away.
func ExampleHold_Context() {
	ctx := context.Background()
	index := connected().Mutex("index")
	hold, err := index.Acquire(ctx, lock.WithLease(time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx)
	_, err = index.ForceRelease(ctx)
	<-hold.Context().Done() // noticed at the next renewal, and here when the lease ends
	fmt.Println(err, context.Cause(hold.Context()))
	// Output: <nil> the hold was lost
}

// A table whose rows refuse a writer that lost the lock without noticing, as after a pause: the token of each write is
// kept and must not decrease. It is compiled but not run: it needs a PostgreSQL server.
func ExampleFencedMutex() {
	var db *sql.DB // sql.Open("pgx", …)
	err := connected().FencedMutex("invoice-7").Do(context.Background(), func(ctx context.Context, token int64) error {
		done, err := db.ExecContext(ctx,
			"UPDATE invoices SET paid = true, token = $1 WHERE id = 7 AND token <= $1", token)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("a newer holder has written: %w", errors.Join(lock.ErrStale, err))
		}
		return nil
	})
	fmt.Println(err)
}

// Three masters of which one may fail.
func ExampleNewQuorum() {
	locks, err := lock.NewQuorum(lock.Options{}, dial(0), dial(1), dial(2))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())
	err = locks.Mutex("leader").Do(context.Background(), func(context.Context) error {
		fmt.Println("held by a majority")
		return nil
	})
	fmt.Println(err)
	// Output:
	// held by a majority
	// <nil>
}

// Errors either prove that nothing happened, or do not.
func ExampleDefinite() {
	fmt.Println(lock.Definite(lock.ErrHeld))
	fmt.Println(lock.Definite(fmt.Errorf("release: %w", lock.ErrUnknown)))
	// Output:
	// true
	// false
}
