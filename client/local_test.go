package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// local is an initialized client in this process whose lock is l; hook may be nil.
func local(t *testing.T, l Locker, hook func()) *Local {
	t.Helper()
	if hook == nil {
		hook = func() {}
	}
	c := NewLocal(func() int64 { return 1 }, Hooks{BeforeStep: hook, BeforeNotice: hook, AfterTimeout: func() {}}, singleRow(l))
	reply, err := c.Do(t.Context(), Request{ID: 1, Op: Init, Setup: &Setup{Lock: "memory"}})
	if err != nil || reply.Type != "ok" {
		t.Fatalf("init: %+v, %v", reply, err)
	}
	return c
}

func TestLocalExecutesRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &stubLocker{grant: Grant{Token: 7}}
		c := local(t, lock, nil)
		reply, err := c.Do(t.Context(), Request{ID: 2, Op: "try", Acquire: Acquire{Key: "k", Owner: "o"}})
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

// A stopped client executes nothing and sends nothing; its reply is late.
func TestLocalStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until time.Time
		stopped := func() { <-time.After(time.Until(until)) } // in virtual time
		c := local(t, &stubLocker{}, stopped)
		until = time.Now().Add(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := Request{ID: 3, Op: "work", Work: time.Millisecond, Acquire: Acquire{Key: "k"}}
		if _, err := c.Do(ctx, r); !errors.Is(err, ErrTimeout) {
			t.Fatalf("error %v, want ErrTimeout", err)
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

func TestLocalSendsNoticesUntilItIsClosed(t *testing.T) {
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

func TestLocalKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := local(t, &stubLocker{}, nil)
		failed := make(chan error, 1)
		go func() {
			_, err := c.Do(t.Context(), Request{Op: "work", Work: time.Hour})
			failed <- err
		}()
		synctest.Wait()
		for range 2 {
			if err := c.Kill(); err != nil {
				t.Error(err)
			}
		}
		if err := <-failed; !errors.Is(err, ErrKilled) {
			t.Errorf("request in progress: %v, want ErrExited", err)
		}
		if _, open := <-c.Notices(); open {
			t.Error("a killed client sends notices")
		}
		if _, err := c.Do(t.Context(), Request{Op: "try"}); !errors.Is(err, ErrExited) {
			t.Errorf("after Kill: %v", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
