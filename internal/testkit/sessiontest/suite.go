// Package sessiontest tests a lock whose holds belong to a session: the tests that packages lock/etcd and
// lock/zookeeper share.
package sessiontest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock"
)

const (
	// Timeout is how long a test waits for an event that has to happen, also on a busy machine.
	Timeout = time.Minute
	// LongLease does not end on a busy machine.
	LongLease = time.Minute
	// ShortLease ends within a test, and not before the test wants it to.
	ShortLease = 6 * time.Second
)

// Backend is a server and the package under test.
type Backend interface {
	Server
	// Open makes a client of the server at addr. It is closed when the test ends.
	Open(t testing.TB, addr string, o Options) Client
	// Undone is the function of the package.
	Undone(err error) bool
	// UndoesUnanswered: a failed acquire removes its entry before the reply to the creation arrives.
	UndoesUnanswered() bool
}

// Server is a server past the package under test.
type Server interface {
	Addr() string
	// Entries are the entries of one lock; of all locks if it is empty.
	Entries(ctx context.Context, lock string) ([]string, error)
	// Watched reports whether there are these watches, and no more.
	Watched(ctx context.Context, w Watches) (bool, error)
	// Remove removes all entries of a lock at once.
	Remove(ctx context.Context, lock string) error
}

// Watches count the watches at a server, where each waiting request has a client of its own.
type Watches struct {
	Held int // entries, each by its holder
	One  int // requests that watch one entry
	All  int // requests that watch all entries of a lock
}

// Options configure a client. The zero value has a lease of LongLease.
type Options struct {
	Lease      time.Duration
	EventsOnly bool // an event wakes a waiter, and not also the time
	OnLost     func()
	Observe    func(lock.Event)
}

// Client is a client of the package under test.
type Client struct {
	Mutex, Reader, Writer func(name string) Lock
	Multi                 func(first string, more ...string) Lock
	Permits               func(name string, n, total int) Lock
	Close                 func(context.Context) error
}

// Lock is a lock of one kind.
type Lock struct {
	Acquire, TryAcquire func(ctx context.Context, owner string) (Hold, error)
}

// Hold is a hold of the package under test.
type Hold interface {
	locktest.Hold
	Err() error
	Deadline() time.Time
	Names() []string
}

type (
	locks[M, R, S any] interface {
		Mutex(name string) M
		RW(name string) R
		Semaphore(name string, total int) S
		Multi(first string, more ...string) M
	}
	readersWriter[M any] interface {
		Read() M
		Write() M
	}
	mutex[H any] interface {
		Acquire(ctx context.Context, owner string) (H, error)
		TryAcquire(ctx context.Context, owner string) (H, error)
	}
	semaphore[H any] interface {
		Acquire(ctx context.Context, owner string, n int) (H, error)
		TryAcquire(ctx context.Context, owner string, n int) (H, error)
	}
)

// ClientOf returns a client of the package under test.
func ClientOf[M mutex[H], R readersWriter[M], S semaphore[H], H Hold](
	c locks[M, R, S], closeClient func(context.Context) error,
) Client {
	return Client{
		Mutex:  func(name string) Lock { return lockOf(c.Mutex(name)) },
		Reader: func(name string) Lock { return lockOf(c.RW(name).Read()) },
		Writer: func(name string) Lock { return lockOf(c.RW(name).Write()) },
		Multi:  func(first string, more ...string) Lock { return lockOf(c.Multi(first, more...)) },
		Permits: func(name string, n, total int) Lock {
			s := c.Semaphore(name, total)
			return Lock{
				func(ctx context.Context, owner string) (Hold, error) { return held(s.Acquire(ctx, owner, n)) },
				func(ctx context.Context, owner string) (Hold, error) { return held(s.TryAcquire(ctx, owner, n)) },
			}
		},
		Close: closeClient,
	}
}

func lockOf[H Hold](m mutex[H]) Lock {
	return Lock{
		func(ctx context.Context, owner string) (Hold, error) { return held(m.Acquire(ctx, owner)) },
		func(ctx context.Context, owner string) (Hold, error) { return held(m.TryAcquire(ctx, owner)) },
	}
}

func held[H Hold](h H, err error) (Hold, error) {
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Proxied is a server and a proxy to it.
type Proxied struct {
	Backend
	Proxy *locktest.Proxy
}

// Behind starts a proxy to a server.
func Behind(t testing.TB, b Backend) *Proxied {
	t.Helper()
	return &Proxied{b, locktest.StartProxy(t, b.Addr())}
}

// cutConnections closes every connection through the proxy, with the replies that it keeps back, and keeps back none
// from now on.
func (s *Proxied) cutConnections() {
	s.Proxy.CutConnections()
	s.Proxy.ResumeReplies()
}

// Client is a client that connects through the proxy.
func (s *Proxied) Client(t testing.TB, o Options) Client {
	t.Helper()
	return s.Open(t, s.Proxy.Addr, o)
}

// Direct is a client past the proxy.
func (s *Proxied) Direct(t testing.TB) Client {
	t.Helper()
	return s.Open(t, s.Addr(), Options{})
}

// WaitForEntries waits until a lock has that many entries.
func (s *Proxied) WaitForEntries(t testing.TB, lock string, want int) {
	t.Helper()
	var found []string
	var err error
	reached := false
	defer func() {
		if !reached {
			t.Logf("entries of lock %s: %q (%v), want %d", lock, found, err, want)
		}
	}()
	locktest.Eventually(t, Timeout, fmt.Sprintf("%d entries of lock %s", want, lock), func() bool {
		found, err = s.Entries(t.Context(), lock)
		reached = err == nil && len(found) == want
		return reached
	})
}

// WaitForWatches waits for these watches: each waiter has seen who is before it.
func (s *Proxied) WaitForWatches(t testing.TB, w Watches) {
	t.Helper()
	locktest.Eventually(t, Timeout, fmt.Sprintf("watches %+v", w), func() bool {
		watched, err := s.Watched(t.Context(), w)
		return err == nil && watched
	})
}

// Acquire acquires the lock within Timeout.
func Acquire[H any](t testing.TB, acquire func(context.Context, string) (H, error), owner string) H {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	t.Cleanup(cancel) // not before: it would end the context of the hold
	h, err := acquire(ctx, owner)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Release releases the hold.
func Release(t testing.TB, h interface{ Release(context.Context) error }) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// result is the result of an acquire.
type result struct {
	hold Hold
	err  error
}

// start acquires in the background.
func start(t *testing.T, l Lock, owner string) <-chan result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	t.Cleanup(cancel)
	return startIn(ctx, l, owner)
}

func startIn(ctx context.Context, l Lock, owner string) <-chan result {
	done := make(chan result, 1)
	go func() {
		h, err := l.Acquire(ctx, owner)
		done <- result{h, err}
	}()
	return done
}

// granted is the hold of an acquire that succeeds.
func granted(t *testing.T, done <-chan result) Hold {
	t.Helper()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.hold
}

// waits fails the test if an acquire has returned.
func waits(t *testing.T, done <-chan result, what string) {
	t.Helper()
	select {
	case r := <-done:
		t.Fatalf("%s does not wait: %v", what, r.err)
	default:
	}
}
