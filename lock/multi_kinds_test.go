package lock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// fourKinds are locks of every kind, as one.
func (x trio) fourKinds(c *Client) []AnyLock {
	return []AnyLock{c.RW(x.d).Write(), c.FairMutex(x.b), c.Mutex(x.a), c.FencedMutex(x.a + "2")}
}

// Locks of any kind are one: all or none, valid until the first ends, lost as a whole.
func TestMultiOfKinds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	eachTrio(t, map[string]func(t *testing.T, x trio){
		"acquired-and-released": func(t *testing.T, x trio) {
			h := acquireAll(t, multi(t, x.fourKinds(x.c)...))
			for _, one := range x.fourKinds(x.theirs) {
				if _, err := multi(t, one).TryAcquire(ctx); !errors.Is(err, ErrHeld) || !Definite(err) {
					t.Errorf("%s by another owner: %v, want a definite ErrHeld", one.part().name, err)
				}
			}
			for name, want := range map[string]bool{x.a + "2": true, x.b: true, x.d: true, "other": false} {
				if _, fenced := h.Token(name); fenced != want {
					t.Errorf("%s is fenced: %v, want %v", name, fenced, want)
				}
			}
			releaseAll(t, h)
			x.want(t, false, false, false)
		},
		"reentered-by-context": func(t *testing.T, x trio) {
			m := multi(t, x.fourKinds(x.c)...)
			h := acquireAll(t, m)
			if _, err := m.TryAcquire(h.Context()); !errors.Is(err, ErrReentered) {
				t.Errorf("without WithReentry: %v, want ErrReentered", err)
			}
			again, err := m.TryAcquire(h.Context(), WithReentry())
			if err != nil {
				t.Fatal(err)
			}
			releaseAll(t, again)
			x.want(t, true, true, true)
			releaseAll(t, h)
			x.want(t, false, false, false)
		},
		"readers-share": func(t *testing.T, x trio) {
			read := func(c *Client) *MultiLock { return multi(t, c.RW(x.a).Read(), c.RW(x.b).Read()) }
			one, two := acquireAll(t, read(x.c)), acquireAll(t, read(x.theirs))
			if _, err := multi(t, x.c.FairMutex(x.d), x.c.RW(x.b).Write()).TryAcquire(ctx); !errors.Is(err, ErrHeld) {
				t.Errorf("a writer: %v, want ErrHeld", err)
			}
			x.want(t, true, true, false)
			if _, err := multi(t, x.c.RW(x.b).Write()).TryAcquire(one.Context(), WithReentry()); !errors.Is(err, ErrUpgrade) {
				t.Errorf("a reader writes: %v, want ErrUpgrade", err)
			}
			releaseAll(t, one)
			releaseAll(t, two)
		},
		"part-lost": func(t *testing.T, x trio) {
			h := acquireAll(t, multi(t, x.fourKinds(x.c)...), WithLease(time.Hour))
			x.rdb.Del(ctx, x.b)
			if err := h.Renew(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("renew: %v, want ErrLost", err)
			}
			<-h.Done()
			if err := h.Release(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("release: %v, want ErrLost", err)
			}
			x.want(t, false, false, false)
		},
		"not-atomic": func(t *testing.T, x trio) {
			if _, err := multi(t, x.fourKinds(x.c)...).TryAcquire(ctx, WithAtomic()); !errors.Is(err, ErrNotAtomic) {
				t.Errorf("atomic: %v, want ErrNotAtomic", err)
			}
			x.want(t, false, false, false)
		},
	})
}

// No matter which of the locks is held, none of the others is left when the acquire fails.
func TestMultiOfKindsIsAllOrNone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c, other := newTestClient(t, rdb, Options{PollMax: time.Hour}), newTestClient(t, rdb, Options{})
	all := func(c *Client) []AnyLock {
		return []AnyLock{c.Mutex("a"), c.FairMutex("b"), c.RW("c").Write(), c.FencedMutex("d"), c.RW("e").Read()}
	}
	held := all(other)
	held[4] = other.RW("e").Write()
	for i, one := range held {
		h := acquireAll(t, multi(t, one))
		_, err := multi(t, all(c)...).TryAcquire(ctx)
		_, waited := multi(t, all(c)...).Acquire(ctx, WithWait(waitTimeout))
		for _, err := range []error{err, waited} {
			if !errors.Is(err, ErrHeld) || !Definite(err) {
				t.Errorf("lock %d is held: %v, want a definite ErrHeld", i, err)
			}
		}
		for j, rest := range all(c) {
			mustExist(t, rdb, rest.part().key, j == i)
		}
		releaseAll(t, h)
	}
}

// Of several masters, only plain mutexes can be among several locks.
func TestMultiOfKindsOnSeveralMasters(t *testing.T) {
	t.Parallel()
	x := startMasters(t, 3, Options{})
	for _, one := range []AnyLock{x.client.FairMutex("a"), x.client.RW("a").Read(), x.client.FencedMutex("a")} {
		if _, err := Multi(x.client.Mutex("b"), one); !errors.Is(err, ErrOneMaster) {
			t.Errorf("%T: %v, want ErrOneMaster", one, err)
		}
	}
}
