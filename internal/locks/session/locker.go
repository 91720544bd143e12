package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

const optionMargin = "margin" // by how much a hold ends before its session

// Options reads a scenario's options of a lock whose holds end with a session, whose length is the option called
// length. Each is set to its value there.
func Options(given map[string]string, length string, session, margin, timeout *time.Duration) error {
	known := map[string]*time.Duration{length: session, optionMargin: margin, native.OptionTimeout: timeout}
	for name, text := range given { // order does not matter: they are independent
		value := known[name]
		if value == nil {
			return fmt.Errorf("unknown option %q; this lock has %s, %s and %s", name, length, optionMargin, native.OptionTimeout)
		}
		var err error
		if *value, err = native.Positive(name, text); err != nil {
			return err
		}
	}
	return nil
}

// checkSession returns the CheckOptions of such a lock.
func checkSession(length string) func(options map[string]string) error {
	return func(options map[string]string) error {
		var session, margin, timeout time.Duration
		return Options(options, length, &session, &margin, &timeout)
	}
}

// Client is a client of packages lock/zookeeper and lock/etcd, which has one session.
type Client interface {
	Connect(ctx context.Context) error // begins the session
	Close(ctx context.Context) error
}

// Hold is a hold of such a client.
type Hold interface {
	comparable
	native.Releasable
	Token() int64
}

// Locker is a [Locker] on clients C, one for each lease, which is the length of its session.
type Locker[C Client, H Hold] struct {
	tokens      bool // grants have them
	notify      func(client.Reply)
	Lease       time.Duration // of requests that have none
	OpenClient  func(lease time.Duration) (C, error)
	mutex       func(c C, a client.Acquire) Mutex[H] // that a request is about
	CloseShared func() error                         // closes shared connections; nil: there are none

	mu      sync.Mutex
	clients map[time.Duration]C
	holds   []ownedHold[H] // that were granted and not released
	ended   []ownedHold[H] // the last that were released, for requests to release them again
}

// ownedHold is a hold and its request.
type ownedHold[H Hold] struct {
	hold H
	ref  client.Hold
}

// is reports whether a request is about h; one without a mode is about either.
func (h ownedHold[H]) is(ref client.Hold) bool {
	own := h.ref
	if ref.Mode == "" {
		own.Mode = ""
	}
	return native.IDOf(own) == native.IDOf(ref) && (ref.Permits == 0 || ref.Permits == own.Permits)
}

// indexOf is the place of a hold among the granted and not released ones, or negative. l.mu is held.
func (l *Locker[C, H]) indexOf(h H) int {
	return slices.IndexFunc(l.holds, func(one ownedHold[H]) bool { return one.hold == h })
}

// report returns a function that reports an event of a hold whose acquire has returned.
func (l *Locker[C, H]) report(event string) func(H) {
	return func(h H) {
		l.mu.Lock()
		i := l.indexOf(h)
		if i < 0 {
			l.mu.Unlock()
			return
		}
		ref := l.holds[i].ref
		l.mu.Unlock()
		for _, key := range native.KeysOf(ref) {
			l.notify(client.Reply{Event: event, Key: key, Owner: ref.Owner, Deadline: h.Deadline()})
		}
	}
}

// client is the client whose session has that length; 0: the client of requests without a lease.
func (l *Locker[C, H]) client(lease time.Duration) (C, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease <= 0 {
		lease = l.Lease
	}
	if c, ok := l.clients[lease]; ok {
		return c, nil
	}
	c, err := l.OpenClient(lease)
	if err == nil {
		if l.clients == nil {
			l.clients = map[time.Duration]C{}
		}
		l.clients[lease] = c
	}
	return c, err
}

// prepare makes the client of requests that have no lease. It refuses wrong settings before the first of them. If
// early, it begins the session as well.
func (l *Locker[C, H]) prepare(early bool) error {
	c, err := l.client(0)
	if err == nil && early {
		ctx, cancel := context.WithTimeout(context.Background(), native.RequestTimeout)
		defer cancel()
		_ = c.Connect(ctx) // requests try again
	}
	return err
}

// Acquire acquires the lock.
func (l *Locker[C, H]) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	c, err := l.client(a.Lease)
	if err != nil {
		return client.Grant{}, err
	}
	m := l.mutex(c, a)
	acquire := m.Acquire
	if a.Wait == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, native.RequestTimeout)
		defer cancel()
		acquire = m.TryAcquire
	}
	h, err := acquire(ctx, a.Owner)
	if err != nil {
		return client.Grant{}, err
	}
	l.mu.Lock()
	l.holds = append(l.holds, ownedHold[H]{h, a.Hold()})
	l.mu.Unlock()
	if errors.Is(h.Err(), lock.ErrLost) { // before it was known: it was not reported
		l.report(history.Lost)(h)
	}
	g := client.Grant{Deadline: h.Deadline()}
	if l.tokens && a.Mode != "read" { // tokens of readers do not order them
		g.Token = uint64(h.Token())
	}
	return g, nil
}

// Renew fails: sessions are renewed by themselves, and their length cannot be changed.
func (l *Locker[C, H]) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

// Release releases the hold, or asks to release the last one again.
func (l *Locker[C, H]) Release(ctx context.Context, ref client.Hold) (int, error) {
	h, ok := l.find(ref)
	if !ok {
		return 0, client.ErrNotHeld
	}
	err := h.hold.Release(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.indexOf(h.hold); i >= 0 && (err == nil || lock.Definite(err)) {
		l.holds = slices.Delete(l.holds, i, i+1)
		l.ended = append(l.ended[max(0, len(l.ended)-native.MaxEnded):], h)
	}
	return 0, err
}

// find is the latest hold of a request, or else the last such hold that has ended.
func (l *Locker[C, H]) find(ref client.Hold) (ownedHold[H], bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range [][]ownedHold[H]{l.holds, l.ended} {
		for _, h := range slices.Backward(list) {
			if h.is(ref) {
				return h, true
			}
		}
	}
	return ownedHold[H]{}, false
}

// Close ends the sessions, and so every hold.
func (l *Locker[C, H]) Close(ctx context.Context) error {
	l.mu.Lock()
	clients := maps.Clone(l.clients)
	l.mu.Unlock() // Close waits for functions that may report a hold
	var errs []error
	for _, lease := range slices.Sorted(maps.Keys(clients)) {
		errs = append(errs, clients[lease].Close(ctx))
	}
	if l.CloseShared != nil {
		errs = append(errs, l.CloseShared())
	}
	return errors.Join(errs...)
}
