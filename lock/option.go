package lock

import (
	"fmt"
	"strings"
	"time"
)

// Option says how a lock is acquired. Given where the lock is made, as to [Client.Mutex], it applies to each of its
// acquires; given to Acquire, TryAcquire or Do, to that one. An option that a kind of lock has no use for is an error
// of its acquires.
type Option func(*settings)

// settings are the options of one acquire.
type settings struct {
	owner     string                      // empty: that of the context's hold, or a new one
	lease     time.Duration               // 0: the client's, which the watchdog renews
	maxHold   time.Duration               // 0: no limit
	wait      time.Duration               // 0: as long as the context lives
	tries     int                         // 0: no limit
	delay     func(try int) time.Duration // nil: the library's
	metadata  string                      // empty: none
	total     int                         // permits of a semaphore; 0: somebody else sets it up
	reentrant bool
	polling   bool
	atomic    bool
	given     optionSet

	patience *patience // for other owners; nil: no limit
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

// What the kinds of locks have a use for.
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

// WithOwner names who is to hold the lock. Without it, the owner is new and unlike any other, or, under the context of
// a hold of this lock, that of the hold. An owner that has the lock is refused with [ErrReentered] unless
// [WithReentry] is given.
func WithOwner(owner string) Option {
	return func(s *settings) { s.owner, s.given = owner, s.given|optOwner }
}

// WithReentry lets an owner that has the lock have it once more: it is free when each of the holds was released. The
// owner is that of [WithOwner], or that of the hold whose context is given to Acquire. All goroutines that share such
// a context are one owner.
func WithReentry() Option {
	return func(s *settings) { s.reentrant, s.given = true, s.given|optReentry }
}

// WithLease is for how long the hold lasts unless Renew or Extend is called; at least 10 ms. Without it, or with 0, it
// has the client's lease, which the watchdog renews until Release.
func WithLease(lease time.Duration) Option {
	return func(s *settings) { s.lease, s.given = lease, s.given|optLease }
}

// WithMaxHold is for how long the watchdog renews the hold at most; after that, it ends with its lease, as lost. So a
// holder that is alive but stuck does not keep the lock for good: the documentation of RedLock asks for such a bound.
// It has no effect on a hold with [WithLease]; 0 is no limit.
func WithMaxHold(limit time.Duration) Option {
	return func(s *settings) { s.maxHold, s.given = limit, s.given|optMaxHold }
}

// WithWait is for how long Acquire and Do wait; the error is [ErrHeld] then. Unlike a deadline of their context it does
// not bound the hold. Without it, or with 0, they wait as long as the context lives.
func WithWait(limit time.Duration) Option {
	return func(s *settings) { s.wait, s.given = limit, s.given|optWait }
}

// WithTries is how many requests Acquire and Do send at most, the first one at once; the error is that of the last
// one, such as [ErrHeld]. Without it, or with 0, there is no limit.
func WithTries(n int) Option {
	return func(s *settings) { s.tries, s.given = n, s.given|optTries }
}

// WithRetryDelay is for how long a waiter sleeps at most after try number 1, 2 and so on found the lock held. A release
// wakes it earlier, unless it polls ([WithPolling], [NewQuorum]). After an error the library's own delay applies.
// Several goroutines may call f.
func WithRetryDelay(f func(try int) time.Duration) Option {
	return func(s *settings) { s.delay, s.given = f, s.given|optRetryDelay }
}

// WithMetadata is a text that is kept with the lock while it is held, for other programs and operators: [State].
// Metadata. That of an inner hold has no effect.
func WithMetadata(text string) Option {
	return func(s *settings) { s.metadata, s.given = text, s.given|optMetadata }
}

// WithPolling makes waiters poll, after random delays that grow up to 128 ms unless [WithRetryDelay] is given, and no
// subscription is made. It suits very many locks that are seldom contended.
func WithPolling() Option {
	return func(s *settings) { s.polling, s.given = true, s.given|optPolling }
}

// WithAtomic refuses, with [ErrCrossSlot], several locks that one script cannot take; see [MultiLock]. While their slot
// of a cluster migrates no script can take them, and the acquire waits.
func WithAtomic() Option {
	return func(s *settings) { s.atomic, s.given = true, s.given|optAtomic }
}

// WithTotal is how many permits a semaphore has: the first acquire sets it up. The total of one that exists stays as it
// is: SetPermits changes it. Without it, an acquire of a semaphore that was not set up is refused with [ErrAbsent].
func WithTotal(permits int) Option {
	return func(s *settings) { s.total, s.given = permits, s.given|optTotal }
}

// with is s changed by opts.
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

// check refuses what a kind of lock has no use for, and values out of range.
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
