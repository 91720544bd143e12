package sessions

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// Client opens sessions of type S, one after another. Its methods may be called concurrently.
type Client[S any] struct {
	Settings
	Open func(*Session) (S, error) // makes a session of a new one, and starts it; one call at a time

	mu      sync.Mutex
	session *Session // of current; nil: none was opened yet; it may have ended
	current S
	closed  bool

	reported time.Time // when the last event of kind Unreachable came
}

// Session is the session of new holds, which is opened if there is none. It waits until that has begun.
func (c *Client[S]) Session(ctx context.Context) (S, error) {
	var none S
	began := time.Now()
	silence := time.NewTimer(unreachableAfter)
	defer silence.Stop()
	for {
		s, own, err := c.latest()
		if err != nil {
			return none, err
		}
		select {
		case <-s.ready:
			if !s.Ended() {
				return own, nil
			}
		case <-s.Done():
			if why := s.refused(); why != nil {
				return none, why
			}
		case <-silence.C:
			c.reportUnreachable(began)
			silence.Reset(unreachableEvery)
		case <-ctx.Done():
			return none, fmt.Errorf("no %s server has answered: %w", c.Service, ctx.Err())
		}
	}
}

// reportUnreachable reports that no server has answered a call since it began, unless another call just did.
func (c *Client[S]) reportUnreachable(began time.Time) {
	now := time.Now()
	c.mu.Lock()
	due := now.Sub(c.reported) >= unreachableEvery
	if due {
		c.reported = now
	}
	c.mu.Unlock()
	if due {
		err := fmt.Errorf("no %s server has answered for %v", c.Service, now.Sub(began).Round(time.Second))
		c.Report(noCall(), lock.Event{Kind: lock.Unreachable, Primitive: "wait", Err: err}, time.Time{})
	}
}

func (c *Client[S]) latest() (*Session, S, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, c.current, lock.ErrClosed
	}
	if c.session == nil || c.session.Ended() {
		s := New(&c.Settings)
		own, err := c.Open(s)
		if err != nil {
			s.stop()
			return nil, own, err
		}
		c.session, c.current = s, own
	}
	return c.session, c.current, nil
}

// Close ends the session, and with it every hold that was not released: their error is [lock.ErrClosed]. It waits for
// the tasks of all sessions, at most until ctx ends.
func (c *Client[S]) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	s := c.session
	c.mu.Unlock()
	if s != nil {
		s.End(lock.ErrClosed)
	}
	done := make(chan struct{})
	go func() {
		c.Tasks.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the %s client: %w", c.Service, ctx.Err())
	}
}
