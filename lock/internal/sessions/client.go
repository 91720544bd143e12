package sessions

import (
	"context"
	"fmt"
	"sync"

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
}

// Session is the session of new holds, which is opened if there is none. It waits until that has begun.
func (c *Client[S]) Session(ctx context.Context) (S, error) {
	var none S
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
		case <-ctx.Done():
			return none, fmt.Errorf("no %s server has answered: %w", c.Service, ctx.Err())
		}
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
