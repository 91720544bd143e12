package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// mustBeHeld fails if m is free.
func mustBeHeld[H anyHold](t *testing.T, m taker[H]) {
	t.Helper()
	if _, err := m.TryAcquire(context.Background()); !errors.Is(err, ErrHeld) || !Definite(err) {
		t.Errorf("try: %v, want a definite ErrHeld", err)
	}
}

// The basic operations of a readers-writer lock.
func TestRW(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c, other := newTestClient(t, rdb, Options{}), newTestClient(t, rdb, Options{})
	for name, run := range map[string]func(t *testing.T, mine, theirs *RW){
		"readers-together": func(t *testing.T, mine, theirs *RW) {
			a, b := acquire(t, mine.Read()), acquire(t, theirs.Read())
			mustBeHeld(t, mine.Write())
			release(t, a)
			mustBeHeld(t, mine.Write())
			release(t, b)
			w := acquire(t, mine.Write())
			if a.token == 0 || b.token != a.token || w.token <= a.token {
				t.Errorf("tokens %d and %d of readers before a writer, %d of the writer", a.token, b.token, w.token)
			}
			release(t, w)
		},
		"writer-alone": func(t *testing.T, mine, theirs *RW) {
			w := acquire(t, mine.Write())
			mustBeHeld(t, theirs.Write())
			mustBeHeld(t, theirs.Read())
			release(t, w)
			r := acquire(t, theirs.Read())
			if r.token != w.token {
				t.Errorf("token %d of a reader, want %d, the last writer's", r.token, w.token)
			}
			release(t, r)
			w2 := acquire(t, theirs.Write())
			if w2.token <= w.token {
				t.Errorf("token %d after %d", w2.token, w.token)
			}
			release(t, w2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, c.RW(name), other.RW(name))
			mustBeRemoved(t, rdb, name)
		})
	}
}

// An owner acquires the lock again in the mode that it holds.
func TestRWReentry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c, other := newTestClient(t, rdb, Options{}), newTestClient(t, rdb, Options{})
	for name, run := range map[string]func(t *testing.T, mine, theirs *RW){
		"read-in-read": func(t *testing.T, mine, _ *RW) {
			a := acquire(t, mine.Read(), WithOwner("x"), WithReentry())
			b, err := mine.Read().Acquire(a.Context(), WithReentry())
			if err != nil || b.Count() != 2 || b.Owner() != "x" {
				t.Fatalf("%+v, %v, want the second hold of x", b, err)
			}
			release(t, a)
			mustBeHeld(t, mine.Write())
			release(t, b)
		},
		"write-in-write": func(t *testing.T, mine, _ *RW) {
			a := acquire(t, mine.Write())
			b, err := mine.Write().Acquire(a.Context(), WithReentry())
			if err != nil || b.Count() != 2 || b.token != a.token {
				t.Fatalf("%+v, %v, want the second hold of one grant", b, err)
			}
			release(t, b)
			mustBeHeld(t, mine.Read())
			release(t, a)
		},
		"write-in-read": func(t *testing.T, mine, _ *RW) {
			a := acquire(t, mine.Read())
			if _, err := mine.Write().Acquire(a.Context(), WithReentry()); !errors.Is(err, ErrUpgrade) || !Definite(err) {
				t.Errorf("upgrade: %v, want a definite ErrUpgrade", err)
			}
			release(t, a)
		},
		"released-twice": func(t *testing.T, mine, _ *RW) {
			a, b := acquire(t, mine.Read()), acquire(t, mine.Read())
			release(t, a)
			if err := a.Release(ctx); !errors.Is(err, ErrReleased) {
				t.Errorf("second release: %v, want ErrReleased", err)
			}
			mustBeHeld(t, mine.Write())
			release(t, b)
		},
		"taken-by-another-writer": func(t *testing.T, mine, theirs *RW) {
			a := acquire(t, mine.Write(), WithLease(50*time.Millisecond))
			b := acquire(t, theirs.Write())
			if err := a.Release(ctx); !errors.Is(err, ErrLost) || !errors.Is(err, ErrNotOwner) {
				t.Errorf("release of a lost hold: %v, want ErrLost and ErrNotOwner", err)
			}
			mustBeHeld(t, mine.Read())
			release(t, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, c.RW(name), other.RW(name))
			mustBeRemoved(t, rdb, name)
		})
	}
}

// The key layout is documented.
func TestRWLayout(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	w := acquire(t, c.RW("seen").Write(), WithOwner("me"), WithReentry())
	r := acquire(t, c.RW("seen").Read(), WithOwner("me"), WithReentry())
	want := map[string]string{
		"mode": "write", "writer": "me", "writes": "1", "reads": "1", "r:me": "1", "token": fmt.Sprint(w.token),
		"h:" + w.claim.id: "w me", "h:" + r.claim.id: "r me",
	}
	if diff := cmp.Diff(want, hashOf(t, rdb, "seen")); diff != "" {
		t.Error(diff)
	}
	release(t, w)
	want = map[string]string{
		"mode": "read", "writes": "0", "reads": "1", "r:me": "1", "token": fmt.Sprint(w.token), "h:" + r.claim.id: "r me",
	}
	if diff := cmp.Diff(want, hashOf(t, rdb, "seen")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{r.claim.id}, rdb.ZRange(context.Background(), "{seen}:leases", 0, -1).Val()); diff != "" {
		t.Error(diff)
	}
	release(t, r)
}

// A key that is not a readers-writer lock is left as it is (redisson#4023: a mutex and a
// read lock of one name were both granted).
func TestRWForeignKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	rdb.Set(ctx, "f1", "mine", 0)
	rdb.Set(ctx, "{f2}:leases", "mine", 0)
	rdb.Set(ctx, "{f3}:intents", "mine", 0)
	m := acquire(t, c.Mutex("f4"))
	for _, name := range []string{"f1", "f2", "f3", "f4"} {
		for what, side := range map[string]*RWSide{"read": c.RW(name).Read(), "write": c.RW(name).Write()} {
			if _, err := side.Acquire(ctx); !errors.Is(err, ErrForeign) || !Definite(err) {
				t.Errorf("%s %s: %v, want a definite ErrForeign", what, name, err)
			}
		}
	}
	release(t, m)
	w := acquire(t, c.RW("f5").Write())
	if _, err := c.Mutex("f5").TryAcquire(ctx); !errors.Is(err, ErrForeign) {
		t.Errorf("mutex on a readers-writer lock: %v, want ErrForeign", err)
	}
	release(t, w)
}

// A client of several masters has neither kind.
func TestOneMasterOnly(t *testing.T) {
	t.Parallel()
	var rdbs []redis.UniversalClient // never dialed
	for i := range 3 {
		rdbs = append(rdbs, dialRedis(t, fmt.Sprint("127.0.0.1:", 1+i)))
	}
	c, err := NewQuorum(Options{}, rdbs...)
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	for name, m := range map[string]fencedTaker{
		"fair": c.FairMutex("x"), "read": c.RW("x").Read(), "write": c.RW("x").Write(),
	} {
		if _, err := m.Acquire(context.Background()); !errors.Is(err, ErrOneMaster) {
			t.Errorf("%s: %v, want ErrOneMaster", name, err)
		}
		if _, err := m.TryAcquire(context.Background()); !errors.Is(err, ErrOneMaster) {
			t.Errorf("try %s: %v, want ErrOneMaster", name, err)
		}
	}
	one := newTestClient(t, rdbs[0], Options{})
	for _, m := range []fencedTaker{one.FairMutex(""), one.RW("a}b").Read()} {
		if _, err := m.Acquire(context.Background()); err == nil || !Definite(err) {
			t.Errorf("bad name: %v, want a definite error", err)
		}
	}
}
