// Package sessions has the common parts of packages lock/etcd and lock/zookeeper: sessions with servers, which end at
// the client before they can end at the servers; the holds that end with them; and the client that opens them.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// ErrEnded says that a session ended before a request was answered.
var ErrEnded = errors.New("the session with the servers has ended")

// Session is a session with servers that end it, and every lock with it, when they have not heard of the client for
// its length. It ends here by a margin earlier. Its methods may be called concurrently.
type Session struct {
	*Settings
	ready chan struct{}      // closed when it has begun
	ctx   context.Context    // ends with the session
	stop  context.CancelFunc // of ctx

	mu     sync.Mutex
	length time.Duration
	heard  time.Time     // when the last request that counted was sent
	sign   chan struct{} // closed at the next request that counts; nil: nobody waits for it
	holds  map[*Hold]struct{}
	why    error // it has ended; nil: it has not
}

// Settings are common to the sessions of a client.
type Settings struct {
	Observer
	Service string        // for errors
	Margin  time.Duration // by how much a session ends before the servers can end it; at most half of its length
	Timeout time.Duration // of a release, and of the removal after an acquire that failed
	Tasks   sync.WaitGroup
}

// New returns a session that has not begun.
func New(settings *Settings) *Session {
	s := &Session{Settings: settings, ready: make(chan struct{}), holds: map[*Hold]struct{}{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Created records that the servers have created the session, at a request that was sent at that time.
func (s *Session) Created(sent time.Time, length time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard, s.length = sent, length
}

// Begin says that the session can be used. It may be called again.
func (s *Session) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}

// Done is closed when the session ends.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Context ends with the session.
func (s *Session) Context() context.Context { return s.ctx }

// Ended reports whether it has ended.
func (s *Session) Ended() bool { return s.ctx.Err() != nil }

// Deadline is until when the session certainly lives at the servers.
func (s *Session) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard.Add(s.length - min(s.Margin, s.length/2))
}

// Watch waits until the session has begun, and ends it at its deadline. It returns when it has ended.
func (s *Session) Watch() {
	select {
	case <-s.ready:
	case <-s.Done():
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		left := time.Until(s.Deadline())
		if left <= 0 {
			s.End(lock.ErrLost)
			return
		}
		timer.Reset(left)
		select {
		case <-timer.C:
		case <-s.Done():
			return
		}
	}
}

// Heard records that a request that was sent at that time was answered. Holds report a renewal if the request is a
// keepalive, and no request that was sent later has been answered.
func (s *Session) Heard(sent time.Time, renewal bool) {
	s.mu.Lock()
	later := sent.After(s.heard)
	var holds []*Hold
	if later {
		s.heard = sent
		if s.sign != nil {
			close(s.sign)
			s.sign = nil
		}
	}
	if later && renewal {
		for h := range s.holds { // in any order: they are independent
			holds = append(holds, h)
		}
	}
	s.mu.Unlock()
	for _, h := range holds {
		h.extended()
	}
}

// AwaitRecent waits until the last request that counted is not older than half of the session's length.
func (s *Session) AwaitRecent(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		if time.Since(s.heard) <= s.length/2 {
			s.mu.Unlock()
			return nil
		}
		if s.sign == nil {
			s.sign = make(chan struct{})
		}
		sign := s.sign
		s.mu.Unlock()
		if err := Await(ctx, s, sign, nil); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// Await waits for an event, or for again to be closed, until ctx or the session ends. Either channel may be nil.
func Await[E any](ctx context.Context, s *Session, event <-chan E, again <-chan struct{}) error {
	select {
	case <-event:
		return nil
	case <-again:
		return nil
	case <-s.Done():
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// End ends the session and its holds because of why.
func (s *Session) End(why error) {
	s.mu.Lock()
	if s.why != nil {
		s.mu.Unlock()
		return
	}
	s.why = why
	s.stop()
	holds := s.holds
	s.holds = nil
	s.mu.Unlock()
	for h := range holds { // in any order: each ends at this instant
		h.endBy(why)
	}
}

// refused is why the session has ended if it has never begun, unless it was lost: then another may be opened.
func (s *Session) refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ready:
		return nil
	default:
	}
	if errors.Is(s.why, lock.ErrLost) {
		return nil
	}
	return s.why
}

// add adds a hold; false: the session has ended.
func (s *Session) add(h *Hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		s.holds[h] = struct{}{}
	}
	return s.why == nil
}

func (s *Session) forget(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

// Undo calls remove, which removes the keys or nodes of an acquire that failed with this error, and returns the error
// of the acquire. It waits no longer than Timeout.
func (s *Session) Undo(why error, remove func() error) error {
	if err, answered := s.within(s.Remove(remove)); answered && err == nil {
		return undoneError{why}
	}
	return fmt.Errorf("%w: %w", lock.ErrUnknown, why)
}

// The pauses between removals that the servers refuse: each is twice as long as the one before it.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// Remove calls do, which removes keys or nodes of the session, as a task, and sends its first error. A removal that
// fails is repeated until it succeeds or the session ends: servers may refuse it for a while (too many requests, a full
// disk, wrong rights), and they keep the keys or nodes as long as the session lives.
func (s *Session) Remove(do func() error) (first <-chan error) {
	answer := make(chan error, 1)
	s.Tasks.Go(func() {
		err := do()
		answer <- err
		for pause := firstPause; err != nil; pause = min(2*pause, lastPause) {
			select {
			case <-time.After(pause):
				err = do()
			case <-s.Done():
				return
			}
		}
	})
	return answer
}

// within waits for a value. False: there was none before Timeout.
func (s *Session) within(answer <-chan error) (err error, answered bool) {
	timer := time.NewTimer(s.Timeout)
	defer timer.Stop()
	select {
	case err = <-answer:
		return err, true
	case <-timer.C:
		return nil, false
	}
}

// Undone reports whether err says that an acquire failed but may have held the lock meanwhile: its entries were removed
// before it returned. It implies [lock.Definite].
func Undone(err error) bool {
	var u undoneError
	return errors.As(err, &u) && lock.Definite(err)
}

// undoneError is an error of an acquire that has left nothing.
type undoneError struct{ error }

func (e undoneError) Unwrap() error { return e.error }
