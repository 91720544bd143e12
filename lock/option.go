package lock

import (
	"fmt"
	"strings"
	"time"
)

// Option sets how a lock is acquired. Passed to the function that makes the lock, such as [Client.Mutex], it applies to
// each of its acquires; passed to Acquire, TryAcquire or Do, to that one only. An acquire fails if its kind of lock
// does not support the option.
type Option func(*settings)

// settings are the options of one acquire.
type settings struct {
	owner     string                      // empty: the owner of the context's hold, or a new one
	lease     time.Duration               // 0: the client's, which the watchdog renews
	maxHold   time.Duration               // 0: no limit
	wait      time.Duration               // 0: until the context ends
	tries     int                         // 0: no limit
	delay     func(try int) time.Duration // nil: the library's
	metadata  string                      // empty: none
	total     int                         // permits of a semaphore; 0: somebody else sets it up
	reentrant bool
	polling   bool
	atomic    bool
	given     optionSet

	backoff *multiBackoff // for other owners; nil: no limit
}

// optionSet is a set of options.
type optionSet uint16

const (
	optOwner optionSet = 1 << iota
	optReentry
	optLease
	optMaxHold
	optWait
	optTries
	optRetryDelay
	optMetadata
	optPolling
	optAtomic
	optTotal
)

// The options that each kind of lock takes.
const (
	waitOptions       = optWait | optTries | optRetryDelay
	leaseOptions      = optLease | optMaxHold
	rwOptions         = optOwner | optReentry | leaseOptions | waitOptions
	fairOptions       = rwOptions | optMetadata
	mutexOptions      = fairOptions | optPolling
	multiOptions      = optOwner | optReentry | optLease | optWait | optAtomic
	poolOptions       = waitOptions | optTotal
	leasedPoolOptions = poolOptions | leaseOptions
)

// WithOwner sets the owner that acquires the lock. By default each acquire has a new, unique owner; an acquire under
// the context of a hold of this lock has the owner of that hold. An owner that already holds the lock is refused with
// [ErrReentered] unless [WithReentry] is given.
func WithOwner(owner string) Option {
	return func(s *settings) { s.owner, s.given = owner, s.given|optOwner }
}

// WithReentry lets an owner that holds the lock acquire it again. The lock is free after each of the holds was
// released. The owner is given by [WithOwner], or by the hold whose context is given to Acquire: all goroutines that
// share such a context are one owner.
func WithReentry() Option {
	return func(s *settings) { s.reentrant, s.given = true, s.given|optReentry }
}

// WithLease sets how long the hold lasts unless Renew or Extend is called: at least 10 ms. Without it, or with 0, the
// hold has the client's lease, which the watchdog renews until Release.
func WithLease(lease time.Duration) Option {
	return func(s *settings) { s.lease, s.given = lease, s.given|optLease }
}

// WithMaxHold limits how long the watchdog renews the hold. After that, the hold is lost when its lease ends, so a
// holder that is alive but stuck does not keep the lock forever; the documentation of RedLock requires such a limit.
// The option has no effect with [WithLease]; 0 means no limit.
func WithMaxHold(limit time.Duration) Option {
	return func(s *settings) { s.maxHold, s.given = limit, s.given|optMaxHold }
}

// WithWait limits how long Acquire and Do wait: after that they fail with [ErrHeld]. Unlike a deadline of their
// context, it does not limit the hold. Without it, or with 0, they wait until the context ends.
func WithWait(limit time.Duration) Option {
	return func(s *settings) { s.wait, s.given = limit, s.given|optWait }
}

// WithTries limits how many requests Acquire and Do send. The first is sent at once; the error is the last request's,
// such as [ErrHeld]. Without it, or with 0, there is no limit.
func WithTries(n int) Option {
	return func(s *settings) { s.tries, s.given = n, s.given|optTries }
}

// WithRetryDelay limits how long a waiter sleeps after try number 1, 2 and so on found the lock held; less than 1 ms
// counts as 1 ms. A release wakes the waiter earlier, unless it polls ([WithPolling], [NewQuorum]). After an error the
// library's own delay applies. f must be safe for concurrent use.
func WithRetryDelay(f func(try int) time.Duration) Option {
	return func(s *settings) { s.delay, s.given = f, s.given|optRetryDelay }
}

// WithMetadata stores a text with the lock while it is held. Other programs and operators read it as [State].Metadata.
// The metadata of an inner hold has no effect.
func WithMetadata(text string) Option {
	return func(s *settings) { s.metadata, s.given = text, s.given|optMetadata }
}

// WithPolling makes waiters poll instead of subscribing. Their random delays grow up to 128 ms, unless [WithRetryDelay]
// is given. It suits a very large number of locks that are seldom contended.
func WithPolling() Option {
	return func(s *settings) { s.polling, s.given = true, s.given|optPolling }
}

// WithAtomic acquires several locks with one script; locks that one script cannot acquire are refused with
// [ErrCrossSlot] or [ErrNotAtomic], see [MultiLock]. While their slot of a cluster migrates, no script can acquire
// them, and the acquire waits.
func WithAtomic() Option {
	return func(s *settings) { s.atomic, s.given = true, s.given|optAtomic }
}

// WithTotal sets the number of permits with which the first acquire creates a semaphore. It does not change an existing
// semaphore: use SetPermits. Without it, an acquire of a semaphore that does not exist is refused with [ErrAbsent].
func WithTotal(permits int) Option {
	return func(s *settings) { s.total, s.given = permits, s.given|optTotal }
}

// with returns s changed by opts.
func (s *settings) with(opts []Option) *settings {
	if len(opts) == 0 {
		return s // without a copy on the heap
	}
	out := *s
	for _, o := range opts {
		o(&out)
	}
	return &out
}

// check refuses options that a kind of lock does not take, and values out of range.
func (s *settings) check(kind string, known optionSet) error {
	if s.given == 0 {
		return nil
	}
	if unknown := s.given &^ known; unknown != 0 {
		return fmt.Errorf("%s has no use for %s: leave it out", kind, unknown)
	}
	for _, d := range []struct {
		what  string
		value time.Duration
	}{{"maximum hold", s.maxHold}, {"wait", s.wait}} {
		if d.value < 0 {
			return fmt.Errorf("%s %v is negative: give a positive duration, or 0 for no limit", d.what, d.value)
		}
	}
	switch {
	case s.tries < 0:
		return fmt.Errorf("%d tries: give a positive number, or 0 for no limit", s.tries)
	case s.given&optRetryDelay != 0 && s.delay == nil:
		return fmt.Errorf("the function of the retry delay is nil: give one")
	case s.given&optTotal != 0:
		return checkCount(s.total, 1, maxCount)
	}
	return nil
}

// String lists the options of the set.
func (o optionSet) String() string {
	var names []string
	for i, name := range []string{
		"WithOwner", "WithReentry", "WithLease", "WithMaxHold", "WithWait", "WithTries", "WithRetryDelay",
		"WithMetadata", "WithPolling", "WithAtomic", "WithTotal",
	} {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
