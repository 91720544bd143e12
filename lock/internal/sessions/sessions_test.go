package sessions_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

const (
	length  = 10 * time.Second
	margin  = time.Second
	timeout = 2 * time.Second
)

// fixture is a client whose sessions begin when they are opened.
type fixture struct {
	sessions.Client[*sessions.Session]
	opened int
}

func newFixture() *fixture {
	f := &fixture{}
	f.Settings = sessions.Settings{Service: "test", Margin: margin, Timeout: timeout}
	f.Open = func(s *sessions.Session) (*sessions.Session, error) {
		f.opened++
		s.Created(time.Now(), length)
		s.Begin()
		s.Tasks.Go(s.Watch)
		return s, nil
	}
	return f
}

// hold is a hold of a new or of the current session, and the session.
func (f *fixture) hold(t *testing.T, lost, renewed func()) (*sessions.Hold, *sessions.Session) {
	t.Helper()
	s, err := f.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := sessions.NewHold(t.Context(), s, anyEvent, lost, renewed)
	if err := h.Begin(); err != nil {
		t.Fatal(err)
	}
	return h, s
}

func nothing() {}

func anyEvent() lock.Event { return lock.Event{Name: "orders"} }

// pass lets virtual time pass.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in a bubble

// removed is a removal that succeeds unless its context has ended.
func removed(ctx context.Context) (bool, error) { return true, ctx.Err() }

// TestDeadline: the holds of a session end one margin before the session ends at the servers. The reply to
// a later request puts that off. The next hold opens another session.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		start, losses, renewals := time.Now(), 0, 0
		h, s := f.hold(t, func() { losses++ }, func() { renewals++ })
		other, _ := f.hold(t, func() { losses++ }, nothing)
		if got := h.Deadline().Sub(start); got != length-margin {
			t.Errorf("deadline after %v, want %v", got, length-margin)
		}
		const renewal = 4 * time.Second
		pass(renewal)
		s.Heard(time.Now(), true)
		s.Heard(start.Add(time.Second), true) // answered late
		s.Heard(start.Add(renewal+1), false)  // not a renewal
		if got := h.Deadline().Sub(start); got != length-margin+renewal+1 || renewals != 1 {
			t.Errorf("deadline after %v, %d renewals, want %v and 1", got, renewals, length-margin+renewal+1)
		}
		<-h.Done()
		synctest.Wait()
		if got := time.Since(start); got != length-margin+renewal+1 || losses != 2 {
			t.Errorf("%d holds lost after %v, want 2 at the deadline", losses, got)
		}
		for _, h := range []*sessions.Hold{h, other} {
			if !errors.Is(h.Err(), lock.ErrLost) || !errors.Is(context.Cause(h.Context()), lock.ErrLost) {
				t.Errorf("err %v, cause %v, want ErrLost", h.Err(), context.Cause(h.Context()))
			}
			err := h.Release(t.Context(), func(context.Context) (bool, error) {
				t.Error("a lost hold is removed")
				return true, nil
			})
			if !errors.Is(err, lock.ErrLost) {
				t.Errorf("release: %v, want ErrLost", err)
			}
		}
		if err := sessions.NewHold(t.Context(), s, anyEvent, nothing, nothing).Begin(); !errors.Is(err, sessions.ErrEnded) {
			t.Errorf("a hold of a session that has ended: %v, want ErrEnded", err)
		}
		if _, next := f.hold(t, nothing, nothing); next == s || f.opened != 2 {
			t.Errorf("%d sessions opened, want another one", f.opened)
		}
		closeClient(t, f)
	})
}

func closeClient(t *testing.T, f *fixture) {
	t.Helper()
	if err := f.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPausedProcess: a hold whose deadline has passed is lost, although no timer has noticed, and no new hold begins.
func TestPausedProcess(t *testing.T) {
	s := sessions.New(&sessions.Settings{Margin: margin})
	s.Created(time.Now(), length) // nobody watches it
	h := sessions.NewHold(t.Context(), s, anyEvent, nothing, nothing)
	if err := h.Begin(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	s.Created(start, margin)
	if got := h.Deadline().Sub(start); got != margin/2 {
		t.Errorf("a session as long as the margin ends after %v, want half of it", got)
	}
	s.Created(start.Add(-length), length)
	none := sessions.NewHold(t.Context(), s, anyEvent, func() { t.Error("a hold that has not begun is reported as lost") }, nothing)
	if err := none.Begin(); !errors.Is(err, sessions.ErrEnded) || none.Context().Err() == nil {
		t.Errorf("begin: %v, context %v, want ErrEnded", err, none.Context().Err())
	}
	if !errors.Is(h.Err(), lock.ErrLost) || !s.Ended() {
		t.Errorf("%v, session ended %v, want ErrLost", h.Err(), s.Ended())
	}
}

// TestRelease: a release waits for the servers for at most the timeout. Its error says whether the hold was lost or the
// outcome is unknown.
func TestRelease(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		remove func(context.Context) (bool, error)
		want   error
		takes  time.Duration
	}{
		"removed":       {remove: removed},
		"was not there": {func(context.Context) (bool, error) { return false, nil }, lock.ErrLost, 0},
		"failed":        {func(context.Context) (bool, error) { return true, broken }, lock.ErrUnknown, 0},
		"not answered": {func(ctx context.Context) (bool, error) {
			pass(3 * timeout)
			return true, ctx.Err()
		}, lock.ErrUnknown, timeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture()
			h, s := f.hold(t, func() { t.Errorf("%s: reported as lost", name) }, nothing)
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // a release does not need its context
			start := time.Now()
			if err := h.Release(ctx, c.remove); !errors.Is(err, c.want) || time.Since(start) != c.takes {
				t.Errorf("%s: %v after %v, want %v after %v", name, err, time.Since(start), c.want, c.takes)
			}
			if !errors.Is(h.Err(), lock.ErrReleased) || !errors.Is(context.Cause(h.Context()), lock.ErrReleased) {
				t.Errorf("%s: err %v, cause %v, want ErrReleased", name, h.Err(), context.Cause(h.Context()))
			}
			if err := h.Release(t.Context(), removed); !errors.Is(err, lock.ErrReleased) {
				t.Errorf("%s: second release: %v, want ErrReleased", name, err)
			}
			s.Heard(time.Now().Add(1), true)
			closeClient(t, f) // waits for the removal
		})
	}
}

// TestReleasedIsNotRenewed: a hold that was released no longer reports anything.
func TestReleasedIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		h, s := f.hold(t, nothing, func() { t.Error("reported as renewed") })
		if err := h.Release(t.Context(), removed); err != nil {
			t.Fatal(err)
		}
		s.Heard(time.Now().Add(1), true)
		closeClient(t, f)
	})
}

// TestUndo: an acquire that failed counts as undone only if its removal was confirmed in time.
func TestUndo(t *testing.T) {
	why := errors.New("why")
	for name, c := range map[string]struct {
		remove func() error
		undone bool
	}{
		"removed":      {func() error { return nil }, true},
		"failed":       {func() error { return context.Canceled }, false},
		"not answered": {func() error { pass(2 * timeout); return nil }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture()
			_, s := f.hold(t, nothing, nothing)
			err := s.Undo(why, c.remove)
			if !errors.Is(err, why) || sessions.Undone(err) != c.undone || errors.Is(err, lock.ErrUnknown) == c.undone {
				t.Errorf("%s: %v, undone %v, want %v", name, err, sessions.Undone(err), c.undone)
			}
			closeClient(t, f)
		})
	}
}

// TestClose: Close ends the holds and waits for the tasks until its context ends. No session is opened afterwards.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		h, s := f.hold(t, func() { t.Error("reported as lost") }, nothing)
		s.Tasks.Go(func() { pass(timeout) })
		ctx, cancel := context.WithTimeout(t.Context(), timeout/2)
		defer cancel()
		if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v, want the context's error", err)
		}
		if err := h.Release(t.Context(), removed); !errors.Is(err, lock.ErrClosed) {
			t.Errorf("release: %v, want ErrClosed", err)
		}
		if _, err := f.Session(t.Context()); !errors.Is(err, lock.ErrClosed) {
			t.Errorf("session: %v, want ErrClosed", err)
		}
		closeClient(t, f)
	})
}

// TestSessionDoesNotBegin: a caller that waits for a session which does not begin gets the reason if the session was
// refused, waits for another session if it was lost, and gives up when its context ends.
func TestSessionDoesNotBegin(t *testing.T) {
	refused := errors.New("refused")
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		begin, end := f.Open, error(nil)
		f.Open = func(s *sessions.Session) (*sessions.Session, error) {
			if f.opened > 0 {
				return begin(s)
			}
			f.opened++
			go func() {
				pass(time.Second)
				s.End(end)
			}()
			return s, nil
		}
		end = refused
		if _, err := f.Session(t.Context()); !errors.Is(err, refused) {
			t.Errorf("%v, want the refusal", err)
		}
		f.opened, end = 0, lock.ErrLost
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := f.Session(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the context's error", err)
		}
		f.hold(t, nothing, nothing)
		if f.opened != 2 {
			t.Errorf("%d sessions, want 2", f.opened)
		}
		closeClient(t, f)
	})
}

// TestAwaitRecent: if no reply has come for more than half of the session's length, AwaitRecent waits for one.
func TestAwaitRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		_, s := f.hold(t, nothing, nothing)
		start := time.Now()
		pass(length / 2)
		if err := s.AwaitRecent(t.Context()); err != nil || time.Since(start) != length/2 {
			t.Errorf("%v after %v, want none at once", err, time.Since(start))
		}
		pass(1)
		go func() {
			pass(time.Second)
			s.Heard(start.Add(1), false) // older than half of the length
			pass(time.Second)
			s.Heard(time.Now(), false)
		}()
		if err := s.AwaitRecent(t.Context()); err != nil || time.Since(start) != length/2+2*time.Second+1 {
			t.Errorf("%v after %v, want none after 2 s", err, time.Since(start)-length/2)
		}
		closeClient(t, f)
	})
}

// TestUnreachable: while no server answers, an event comes after two seconds and then every ten, however many calls
// wait.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		begin := make(chan struct{})
		f.Open = func(s *sessions.Session) (*sessions.Session, error) {
			s.Tasks.Go(func() {
				<-begin
				s.Created(time.Now(), length)
				s.Begin()
			})
			return s, nil
		}
		start := time.Now()
		var at []time.Duration
		f.Observe = func(e lock.Event) {
			if e.Kind != lock.Unreachable || e.Err == nil {
				t.Errorf("event %+v", e)
			}
			at = append(at, time.Since(start))
		}
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				if _, err := f.Session(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		pass(25 * time.Second)
		close(begin)
		calls.Wait()
		if want := []time.Duration{2 * time.Second, 12 * time.Second, 22 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("events at %v, want %v", at, want)
		}
		if _, err := f.Session(t.Context()); err != nil {
			t.Error(err)
		}
		pass(25 * time.Second)
		if len(at) != 3 {
			t.Errorf("%d events after a server has answered", len(at)-3)
		}
	})
}
