package lock

import (
	"context"
	"errors"
	"sync"
	"time"
)

// stay is what a hold of leased things has in common: a context that ends with
// it, a deadline, and somebody who moves the deadline on. One goroutine looks
// after it until it ends.
type leaseKeeper struct {
	client *Client
	auto   bool // renewed every third of the lease
	// renew asks for the lease from now on; nil: there is no lease.
	renew  func(ctx context.Context, lease time.Duration) (kept bool, err error)
	notice func(what EventKind, err error) // of a renewal by itself, and of the loss
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	lease    time.Duration
	deadline time.Time // zero: there is none
	due      time.Time // of the next renewal
	over     error     // why it has ended; nil while it lasts
	released bool      // a release was answered
}

// begin starts a stay whose lease was asked for at sent.
func (s *leaseKeeper) begin(ctx context.Context, sent time.Time) {
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if s.renew != nil {
		s.deadline = sent.Add(validity(s.lease))
		s.due = sent.Add(s.lease / 3)
	}
	if !s.client.bg.start(s.watch) {
		s.end(ErrClosed)
	}
}

// watch renews the stay, ends it at its deadline, and ends it with the client.
func (s *leaseKeeper) watch() {
	timer := time.NewTimer(s.idle())
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.client.bg.ctx.Done():
			s.end(ErrClosed)
			return
		case <-timer.C:
		}
		s.look()
		timer.Reset(s.idle())
	}
}

// idle is for how long nothing needs to be done.
func (s *leaseKeeper) idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.deadline.IsZero():
		return time.Hour
	case s.auto && s.due.Before(s.deadline):
		return time.Until(s.due)
	}
	return time.Until(s.deadline)
}

// look does what is due.
func (s *leaseKeeper) look() {
	s.mu.Lock()
	now := time.Now()
	over := !s.deadline.IsZero() && !now.Before(s.deadline)
	due := s.auto && !now.Before(s.due)
	lease := s.lease
	s.mu.Unlock()
	switch {
	case over:
		s.end(ErrLost)
	case due:
		ctx, cancel := context.WithTimeout(s.ctx, lease/3)
		defer cancel()
		if err := s.renewOnce(ctx, lease); err != nil {
			s.mu.Lock()
			s.due = time.Now().Add(min(s.client.backoff(), lease/10))
			s.mu.Unlock()
			return
		}
		s.notice(Renewed, nil)
	}
}

// renewOnce asks once. The lease counts from when it was asked for; an answer
// that comes after the end changes nothing.
func (s *leaseKeeper) renewOnce(ctx context.Context, lease time.Duration) error {
	s.mu.Lock()
	deadline := s.deadline
	s.mu.Unlock()
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, ErrLost)
	defer cancel()
	sent := time.Now()
	kept, err := s.renew(ctx, lease)
	if err != nil {
		return err
	}
	if !kept {
		s.end(ErrLost)
		return ErrLost
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return s.over
	}
	if until := sent.Add(validity(lease)); until.After(s.deadline) {
		s.deadline = until
	}
	s.due = sent.Add(s.lease / 3)
	return nil
}

// prolong asks until there is an answer, and ctx and the stay last.
func (s *leaseKeeper) prolong(ctx context.Context, lease time.Duration) error {
	for {
		if over := s.ended(); over != nil {
			return over
		}
		err := s.renewOnce(ctx, lease)
		if err == nil || errors.Is(err, ErrLost) || outcomeOf(err) == rejected {
			return err
		}
		if !s.client.pause(ctx, s.client.backoff()) {
			return err
		}
	}
}

func (s *leaseKeeper) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// end ends the stay, once, and returns why it had ended before.
func (s *leaseKeeper) end(why error) (before error) {
	s.mu.Lock()
	before = s.over
	if before == nil {
		s.over = why
	}
	s.mu.Unlock()
	if before == nil {
		s.cancel(why)
		if errors.Is(why, ErrLost) {
			s.notice(Lost, why)
		}
	}
	return before
}

// until is the deadline; zero: there is none.
func (s *leaseKeeper) until() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadline
}

// giveBack ends the stay and gives it back, even if ctx has ended. Its error is
// [ErrLost] if the answer is that it was not held any more, and [ErrReleased]
// if it was given back before.
func (s *leaseKeeper) giveBack(ctx context.Context, back func(ctx context.Context) (held bool, err error)) error {
	before := s.end(ErrReleased)
	s.mu.Lock()
	released := s.released
	s.mu.Unlock()
	if released {
		return ErrReleased
	}
	held := false
	err := s.client.retry(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		held, err = back(ctx)
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.released = true
	s.mu.Unlock()
	if !held || errors.Is(before, ErrLost) {
		return ErrLost
	}
	return nil
}
