package historic

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

const lease = 150 * time.Millisecond

func open(t *testing.T, name string, c Config) Lock {
	t.Helper()
	row, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := row.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func on(rdb ...redis.UniversalClient) Config { return Config{Masters: rdb} }

func must(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", what, err, want)
	}
}

// Without faults every lock excludes.
func TestEveryLockExcludesOnTheHappyPath(t *testing.T) {
	ctx := context.Background()
	var three []redis.UniversalClient
	for range 3 {
		three = append(three, locktest.StartServer(t).Dial(t))
	}
	for _, row := range Catalog() {
		t.Run(row.Name, func(t *testing.T) {
			c := on(three[0])
			if row.Quorum {
				c = on(three...)
			}
			a, b := open(t, row.Name, c), open(t, row.Name, c)
			must(t, "acquire", a.TryAcquire(ctx, row.Name, "a", 0), nil)
			must(t, "acquire of another", b.TryAcquire(ctx, row.Name, "b", 0), ErrHeld)
			if row.Reentrant {
				must(t, "re-entry", a.TryAcquire(ctx, row.Name, "a", 0), nil)
				must(t, "release of the inner hold", a.Release(ctx, row.Name, "a"), nil)
				must(t, "acquire of another", b.TryAcquire(ctx, row.Name, "b", 0), ErrHeld)
			}
			short, cancel := context.WithTimeout(ctx, 60*time.Millisecond)
			defer cancel()
			if _, err := Acquire(short, b, row.Name, "b", 0); err == nil {
				t.Error("granted while it is held")
			}
			granted := make(chan error, 1)
			long, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			go func() {
				_, err := Acquire(long, b, row.Name, "b", 0)
				granted <- err
			}()
			must(t, "release", a.Release(ctx, row.Name, "a"), nil)
			must(t, "acquire after the release", <-granted, nil)
			must(t, "release", b.Release(ctx, row.Name, "b"), nil)
		})
	}
}

func TestOpenRejects(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	for _, row := range Catalog() {
		if row.Flaw == "" || row.Source == "" {
			t.Errorf("%s: no flaw, or no source", row.Name)
		}
		for _, n := range []int{0, 2} {
			if _, err := row.Open(on(make([]redis.UniversalClient, n)...)); err == nil {
				t.Errorf("%s was opened with %d masters", row.Name, n)
			}
		}
	}
	if _, err := Lookup("mutex"); err == nil {
		t.Error("found an unknown lock")
	}
}

// stopBefore is a go-redis hook that blocks one command, as if the process were
// stopped or had crashed right before sending it.
type stopBefore struct {
	command string
	after   int           // commands of that name to let pass first
	reached chan struct{} // closed when the command is about to be sent
	proceed chan error    // nil: send it; else fail with this error
}

func newStop(command string) *stopBefore {
	return &stopBefore{command: command, reached: make(chan struct{}), proceed: make(chan error, 1)}
}

func (s *stopBefore) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *stopBefore) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := s.stop(cmd); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (s *stopBefore) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := s.stop(cmd); err != nil {
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// await waits until the command is about to be sent. It fails if the operation ends without it.
func (s *stopBefore) await(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case <-s.reached:
	case err := <-ended:
		t.Fatalf("%s was not sent; the operation ended with %v", s.command, err)
	}
}

// stop blocks the first command of that name, after those to let pass.
func (s *stopBefore) stop(cmd redis.Cmder) error {
	if cmd.Name() != s.command {
		return nil
	}
	if s.after--; s.after != -1 {
		return nil
	}
	close(s.reached)
	err := <-s.proceed
	if err != nil {
		cmd.SetErr(err)
	}
	return err
}

// awaitExpiry waits until the lease of name has expired at the server.
func awaitExpiry(t *testing.T, rdb *redis.Client, name string) {
	t.Helper()
	locktest.Eventually(t, 20*time.Second, "the lease has expired", func() bool {
		return rdb.Exists(context.Background(), name).Val() == 0
	})
}
