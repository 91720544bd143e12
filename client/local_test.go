package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// local is a client in this process whose lock is l; turn may be nil.
func local(t *testing.T, l Locker, turn func()) *Local {
	t.Helper()
	if turn == nil {
		turn = func() {}
	}
	c := NewLocal(func() int64 { return 1 }, Hooks{BeforeStep: turn, BeforeNotice: turn}, nil)
	c.native.lookup = singleLock(l)
	reply, err := c.Do(t.Context(), Request{ID: 1, Op: Init, Setup: &Setup{Lock: "memory"}})
	if err != nil || reply.Type != "ok" {
		t.Fatalf("init: %+v, %v", reply, err)
	}
	return c
}

func TestLocalObeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &stubLocker{grant: Grant{Token: 7}}
		c := local(t, lock, nil)
		reply, err := c.Do(t.Context(), Request{ID: 2, Op: "try", Key: "k", Owner: "o"})
		if err != nil || reply.ID != 2 || reply.Type != "ok" || reply.Token != 7 {
			t.Errorf("try: %+v, %v", reply, err)
		}
		for range 2 {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if lock.closed != 1 {
			t.Errorf("the lock was closed %d times", lock.closed)
		}
		if _, err := c.Do(t.Context(), Request{Op: "try"}); !errors.Is(err, ErrExited) {
			t.Errorf("after Close: %v", err)
		}
		if _, open := <-c.Notices(); open {
			t.Error("Notices is open after Close")
		}
	})
}

// A client that stands still does nothing, says nothing, and is late.
func TestLocalStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until time.Time
		still := func() { <-time.After(time.Until(until)) } // in virtual time
		c := local(t, &stubLocker{}, still)
		until = time.Now().Add(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Do(ctx, Request{ID: 3, Op: "work", MS: 1, Key: "k"}); !errors.Is(err, ErrTimeout) {
			t.Fatalf("error %v, want ErrLate", err)
		}
		late := <-c.Notices()
		if late.Event != EventLate || late.Op != "work" || late.ID != 3 || time.Now().Before(until) {
			t.Errorf("%+v at %v", late, time.Now())
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestLocalTellsUntilItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := local(t, &stubLocker{}, nil)
		go c.native.notify(Reply{Event: "lost", Key: "k"})
		if r := <-c.Notices(); r.Event != "lost" {
			t.Errorf("%+v", r)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.native.notify(Reply{Event: "lost"}) // does not block and does not panic
	})
}

func TestLocalIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := local(t, &stubLocker{}, nil)
		failed := make(chan error, 1)
		go func() {
			_, err := c.Do(t.Context(), Request{Op: "work", MS: 3.6e6})
			failed <- err
		}()
		synctest.Wait()
		for range 2 {
			if err := c.Kill(); err != nil {
				t.Error(err)
			}
		}
		if err := <-failed; !errors.Is(err, ErrExited) {
			t.Errorf("what was under way: %v, want ErrGone", err)
		}
		if _, open := <-c.Notices(); open {
			t.Error("a dead client tells something")
		}
		if _, err := c.Do(t.Context(), Request{Op: "try"}); !errors.Is(err, ErrExited) {
			t.Errorf("after Kill: %v", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
