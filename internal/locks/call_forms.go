package locks

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/lock"
)

// This file is about option calls of a scenario: with it, acquires of package lock are made in all forms that its API
// has, chosen by the owner.

// callForm is one of them.
type callForm uint32

const (
	plainForm   callForm = iota
	delayedForm          // with a retry delay
	limitedForm          // with that, and a limit of requests
	lockerForm           // as a sync.Locker, if the lock is a mutex without owners
	callForms
)

// formOf chooses the form of the acquires of an owner.
func formOf(owner string) callForm {
	return callForm(crc32.ChecksumIEEE([]byte("form of "+owner))) % callForms
}

// fewTries is how many requests an acquire of the limited form may send.
const fewTries = 3

// retries are the calls of the retry delay of one acquire, which ask for how long to sleep after which request.
type retries struct {
	most int // how many requests there may be; 0: no limit

	mu    sync.Mutex
	last  int
	wrong error
}

// delay is the function for lock.WithRetryDelay.
func (r *retries) delay(try int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.wrong != nil:
	case try <= r.last:
		r.wrong = contradiction("the retry delay is asked for after request %d, and then after %d", r.last, try)
	case r.most > 0 && try >= r.most:
		r.wrong = contradiction("an acquire of at most %d requests asks for how long to sleep after request %d", r.most, try)
	}
	r.last = try
	return min(time.Duration(try)*50*time.Millisecond, 200*time.Millisecond)
}

// check returns the error of the calls, if any.
func (r *retries) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrong
}

// vary adds the options of the form of a's owner to c. check is called after the acquire.
func (l *library) vary(c *acquireCall, a client.Acquire) (check func() error) {
	form := formOf(a.Owner)
	c.locker = form == lockerForm
	if form != delayedForm && form != limitedForm || a.Wait == 0 {
		return func() error { return nil }
	}
	r := &retries{}
	if form == limitedForm {
		r.most = fewTries
		c.opts = append(c.opts, lock.WithTries(fewTries))
	}
	c.opts = append(c.opts, lock.WithRetryDelay(r.delay))
	return r.check
}

// lockerHold is the hold of a lock.Locker.
type lockerHold struct {
	*lock.Hold
	locker *lock.Locker
}

var errUnlocked = fmt.Errorf("%w: it was unlocked before", client.ErrNotHeld)

// acquireLocker acquires m as a sync.Locker, which panics where it cannot return an error.
func acquireLocker(ctx context.Context, m *lock.Mutex, wait bool, opts []lock.Option) (held, error) {
	l := m.Locker(ctx, opts...)
	var err error
	if wait {
		err = thrown(l.Lock)
	} else if !l.TryLock() {
		if err = l.Err(); err == nil {
			err = lock.ErrHeld
		}
	}
	h := l.Hold()
	switch {
	case (h == nil) != (err != nil):
		return nil, contradiction("a Locker that has ended with %v has the hold %v", err, h)
	case err != nil:
		return nil, err
	}
	return &lockerHold{h, l}, nil
}

// thrown is the error with which f panics; nil: it returns.
func thrown(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			var is bool
			if err, is = p.(error); !is {
				err = fmt.Errorf("%w: %v", errThrown, p)
			}
		}
	}()
	f()
	return nil
}

var errThrown = errors.New("the lock panicked")

// Release unlocks the Locker. A second time it has to panic.
func (h *lockerHold) Release(context.Context) error {
	again := h.locker.Hold() == nil
	err := thrown(h.locker.Unlock)
	switch {
	case again && err == nil:
		return contradiction("a Locker that was unlocked is unlocked again")
	case again:
		return errUnlocked
	case err != nil:
		return contradiction("the unlock of a Locker that is locked panics: %v", err)
	case h.locker.Hold() != nil:
		return contradiction("a Locker that was unlocked has a hold")
	}
	return h.locker.Err()
}
