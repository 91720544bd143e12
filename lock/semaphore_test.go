package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// sem has the common methods of both kinds of semaphore.
type sem interface {
	TrySetPermits(ctx context.Context, n int) (bool, error)
	SetPermits(ctx context.Context, n int) error
	AddPermits(ctx context.Context, n int) (int, error)
	State(ctx context.Context) (SemaphoreState, error)
}

// tested is one semaphore of one kind.
type tested struct {
	sem
	name  string
	c     *Client
	rdb   *redis.Client
	take  func(ctx context.Context, n int, opts ...Option) (*Permits, error)
	try   func(ctx context.Context, n int, opts ...Option) (*Permits, error)
	force func(ctx context.Context, ids ...string) (int, error)
}

func plainSem(c *Client, rdb *redis.Client, name string) *tested {
	s := c.Semaphore(name)
	return &tested{s, name, c, rdb, s.Acquire, s.TryAcquire, s.ForceRelease}
}

func leasedSem(c *Client, rdb *redis.Client, name string) *tested {
	s := c.PermitSemaphore(name)
	return &tested{s, name, c, rdb, s.Acquire, s.TryAcquire, s.ForceRelease}
}

type maker func(c *Client, rdb *redis.Client, name string) *tested

// bothKinds runs each case with both kinds, each with a name of its own; rdb of
// the client goes to the server through via.
func bothKinds(t *testing.T, cases map[string]func(t *testing.T, s *tested)) {
	t.Helper()
	srv := startRedis(t)
	rdb := srv.Dial(t)
	c := newTestClient(t, srv.Dial(t), Options{})
	for kind, build := range map[string]maker{"plain": plainSem, "leased": leasedSem} {
		for name, run := range cases {
			t.Run(kind+"/"+name, func(t *testing.T) { run(t, build(c, rdb, kind+"-"+name)) })
		}
	}
}

// setUp makes n the total of a new semaphore.
func (s *tested) setUp(t testing.TB, n int) {
	t.Helper()
	set, err := s.TrySetPermits(context.Background(), n)
	for began := time.Now(); err != nil && time.Since(began) < testTimeout; { // a short Timeout passes on a busy machine
		_, err = s.TrySetPermits(context.Background(), n)
		set = true // if not by this attempt, by the timed-out one
	}
	if err != nil || !set {
		t.Fatalf("set up: %v, %v", set, err)
	}
}

// want checks the state, and that no permit is lost or doubled: free and held permits are
// always the total.
func (s *tested) want(t testing.TB, total, free int) {
	t.Helper()
	got, err := s.State(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out := 0
	for _, h := range got.Holds {
		out += h.Permits
	}
	if got.Total != total || got.Free != free || got.Free+out != got.Total {
		t.Fatalf("total %d, free %d, out %d; want total %d, free %d, and the rest out",
			got.Total, got.Free, out, total, free)
	}
}

func mustTake(t testing.TB, p *Permits, err error) *Permits {
	t.Helper()
	if err != nil {
		t.Fatalf("acquire permits: %v", err)
	}
	return p
}

func mustGive(t testing.TB, p *Permits) {
	t.Helper()
	if err := p.Release(context.Background()); err != nil {
		t.Fatalf("release permits: %v", err)
	}
}

// The basic operations of permits.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	bothKinds(t, map[string]func(t *testing.T, s *tested){
		"acquired-and-released": func(t *testing.T, s *tested) {
			s.setUp(t, 5)
			p, err := s.take(ctx, 3)
			mustTake(t, p, err)
			s.want(t, 5, 2)
			if _, err := s.try(ctx, 3); !errors.Is(err, ErrNoPermits) || !errors.Is(err, ErrHeld) || !Definite(err) {
				t.Errorf("error %v, want a definite ErrNoPermits, which is ErrHeld", err)
			}
			mustGive(t, p)
			s.want(t, 5, 5)
			if got := context.Cause(p.Context()); !errors.Is(got, ErrReleased) {
				t.Errorf("cause %v, want ErrReleased", got)
			}
		},
		"observer-sees-who-holds": func(t *testing.T, s *tested) {
			s.setUp(t, 5)
			p, err := s.take(ctx, 2)
			mustTake(t, p, err)
			got, _ := s.State(ctx)
			var ids []string
			for _, h := range got.Holds {
				ids = append(ids, h.ID)
			}
			if diff := cmp.Diff(p.IDs(), ids); diff != "" {
				t.Error(diff)
			}
			mustGive(t, p)
		},
		"total-lowered-below-what-is-held": func(t *testing.T, s *tested) {
			s.setUp(t, 4)
			p, err := s.take(ctx, 3)
			mustTake(t, p, err)
			if err := s.SetPermits(ctx, 2); err != nil {
				t.Fatal(err)
			}
			s.want(t, 2, -1)
			if _, err := s.try(ctx, 1); !errors.Is(err, ErrNoPermits) {
				t.Errorf("error %v, want ErrNoPermits", err)
			}
			mustGive(t, p)
			s.want(t, 2, 2)
			if total, err := s.AddPermits(ctx, 3); err != nil || total != 5 {
				t.Errorf("add: %d, %v, want 5", total, err)
			}
			s.want(t, 5, 5)
		},
	})
}

// Less common operations of permits.
func TestSemaphoreDisturbed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	bothKinds(t, map[string]func(t *testing.T, s *tested){
		"released-with-ended-context": func(t *testing.T, s *tested) {
			s.setUp(t, 1)
			p, err := s.take(ctx, 1)
			mustTake(t, p, err)
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if err := p.Release(ended); err != nil {
				t.Error(err)
			}
			s.want(t, 1, 1)
		},
		"taken-away-by-force": func(t *testing.T, s *tested) {
			s.setUp(t, 3)
			p, err := s.take(ctx, 2)
			mustTake(t, p, err)
			if n, err := s.force(ctx, p.IDs()...); n != 2 || err != nil {
				t.Errorf("force: %d, %v, want 2", n, err)
			}
			s.want(t, 3, 3)
			if err := p.Release(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("release: %v, want ErrLost", err)
			}
			s.want(t, 3, 3)
		},
		"script-cache-emptied": func(t *testing.T, s *tested) {
			s.setUp(t, 1)
			s.rdb.ScriptFlush(ctx)
			p, err := s.take(ctx, 1)
			mustTake(t, p, err)
			s.rdb.ScriptFlush(ctx)
			mustGive(t, p)
			s.want(t, 1, 1)
		},
		"wait-runs-out": func(t *testing.T, s *tested) {
			s.setUp(t, 1)
			p, err := s.take(ctx, 1)
			mustTake(t, p, err)
			short, cancel := context.WithTimeout(ctx, waitTimeout)
			defer cancel()
			_, err = s.take(short, 1)
			if !errors.Is(err, ErrNoPermits) || !errors.Is(err, context.DeadlineExceeded) || !Definite(err) {
				t.Errorf("error %v, want a definite ErrNoPermits and DeadlineExceeded", err)
			}
			mustGive(t, p)
		},
	})
}

// Invalid numbers, names and keys are refused, each with its own error.
func TestSemaphoreBadInput(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	try := func(n int) func(s *tested) error {
		return func(s *tested) error { _, err := s.try(ctx, n); return err }
	}
	add := func(n int) func(s *tested) error {
		return func(s *tested) error { _, err := s.AddPermits(ctx, n); return err }
	}
	cases := map[string]func(t *testing.T, s *tested){}
	for name, tt := range map[string]struct {
		do   func(s *tested) error
		want error
	}{
		"acquire-none":        {try(0), ErrPermits},
		"acquire-negative":    {try(-1), ErrPermits},
		"acquire-above-total": {try(6), ErrPermits},
		"acquire-huge":        {try(1 << 40), ErrPermits},
		"set-negative":        {func(s *tested) error { return s.SetPermits(ctx, -1) }, ErrPermits},
		"add-none":            {add(0), ErrPermits},
		"add-less-than-none":  {add(-6), ErrPermits},
		"absent":              {func(s *tested) error { s.rdb.Del(ctx, s.name); return try(1)(s) }, ErrAbsent},
		"add-to-absent":       {func(s *tested) error { s.rdb.Del(ctx, s.name); return add(1)(s) }, ErrAbsent},
		"foreign-string":      {func(s *tested) error { s.rdb.Set(ctx, s.name, "x", 0); return try(1)(s) }, ErrForeign},
		"foreign-hash": {func(s *tested) error {
			s.rdb.HSet(ctx, s.name, "kind", "x")
			return try(1)(s)
		}, ErrForeign},
		"set-up-over-a-string": {func(s *tested) error {
			s.rdb.Set(ctx, s.name, "x", 0)
			return s.SetPermits(ctx, 1)
		}, ErrForeign},
	} {
		cases[name] = func(t *testing.T, s *tested) {
			s.setUp(t, 5)
			if err := tt.do(s); !errors.Is(err, tt.want) || !Definite(err) {
				t.Errorf("error %v, want a definite %v", err, tt.want)
			}
			if errors.Is(tt.want, ErrForeign) {
				mustExist(t, s.rdb, s.name, true)
			}
		}
	}
	cases["a-mutex-is-no-semaphore"] = func(t *testing.T, s *tested) {
		h := acquire(t, s.c.Mutex(s.name))
		if _, err := s.TrySetPermits(ctx, 1); !errors.Is(err, ErrForeign) {
			t.Errorf("error %v, want ErrForeign", err)
		}
		release(t, h)
		s.setUp(t, 1)
		if _, err := s.c.Mutex(s.name).TryAcquire(ctx); !errors.Is(err, ErrForeign) {
			t.Errorf("error %v, want ErrForeign", err)
		}
	}
	bothKinds(t, cases)
}
