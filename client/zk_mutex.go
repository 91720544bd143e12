package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/zookeeper"
)

// zkMutexSpec is the mutex of package lock/zookeeper. The lease of a request is the timeout of the session.
var zkMutexSpec = Spec{
	Name: "zk-mutex",
	Doc: "package lock/zookeeper's mutex: ephemeral sequential nodes, each of which waits for the one before it; its " +
		"hold ends with its session.",
	Source:     "ZooKeeper Recipes and Solutions, Locks",
	Topologies: []string{ZooKeeper},
	Can:        Capabilities{CanTry, RenewsItself, ReportsLoss, Wakes, Fair, Fenced},
	Open:       func(s Setup, notify func(Reply)) (Locker, error) { return openZKMutex(s, notify) },
	Definite:   lock.Definite,
	Undone:     zookeeper.Undone,
	Code:       lockCode,
}

// zkSession is the session timeout where a request has no lease and a scenario sets none.
const zkSession = 4 * time.Second

const (
	optionSession = "session" // timeout of sessions of holds that request no lease
	optionMargin  = "margin"  // by how much a hold ends before its session
)

// zkMutex is a [Locker] on package lock/zookeeper, with a client, and so a session, for each lease.
type zkMutex struct {
	servers []string
	options zookeeper.Options
	notify  func(Reply)

	mu      sync.Mutex
	clients map[time.Duration]*zookeeper.Client
	holds   map[*zookeeper.Hold]struct{} // that were granted and not released
	ended   []*zookeeper.Hold            // the last that were released, for requests to release them again
}

func openZKMutex(s Setup, notify func(Reply)) (*zkMutex, error) {
	dial, err := dialer(s)
	if err != nil {
		return nil, err
	}
	l := &zkMutex{
		servers: s.Endpoints.Addrs, notify: notify,
		clients: map[time.Duration]*zookeeper.Client{}, holds: map[*zookeeper.Hold]struct{}{},
	}
	l.options = zookeeper.Options{
		Session: zkSession, Root: ZooKeeperRoot, Dial: dial,
		OnLost: l.report(history.Lost), OnRenewed: l.report(history.Renewed),
	}
	for name, text := range s.Options { // order does not matter: they are independent
		switch name {
		case optionSession:
			l.options.Session, err = positive(name, text)
		case optionMargin:
			l.options.Margin, err = positive(name, text)
		case optionTimeout:
			l.options.Timeout, err = positive(name, text)
		default:
			err = fmt.Errorf("unknown option %q; this lock has %s, %s and %s", name, optionSession, optionMargin, optionTimeout)
		}
		if err != nil {
			return nil, err
		}
	}
	_, err = l.client(0) // refuses what is wrong before the first request
	return l, err
}

// report returns a function that reports an event of a hold whose acquire has returned.
func (l *zkMutex) report(event string) func(*zookeeper.Hold) {
	return func(h *zookeeper.Hold) {
		l.mu.Lock()
		_, known := l.holds[h]
		l.mu.Unlock()
		if known {
			l.notify(Reply{Event: event, Key: h.Name(), Owner: h.Owner(), Deadline: h.Deadline()})
		}
	}
}

// client is the client whose sessions have that timeout.
func (l *zkMutex) client(lease time.Duration) (*zookeeper.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clients[lease]; c != nil {
		return c, nil
	}
	o := l.options
	if lease > 0 {
		o.Session = lease
	}
	c, err := zookeeper.Open(l.servers, o)
	if err == nil {
		l.clients[lease] = c
	}
	return c, err
}

// Acquire acquires the lock.
func (l *zkMutex) Acquire(ctx context.Context, a Acquire) (Grant, error) {
	c, err := l.client(a.Lease)
	if err != nil {
		return Grant{}, err
	}
	acquire := c.Mutex(a.Key).Acquire
	if a.Wait == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, readTimeout)
		defer cancel()
		acquire = c.Mutex(a.Key).TryAcquire
	}
	h, err := acquire(ctx, a.Owner)
	if err != nil {
		return Grant{}, err
	}
	l.mu.Lock()
	l.holds[h] = struct{}{}
	l.mu.Unlock()
	if errors.Is(h.Err(), lock.ErrLost) { // before it was known: it was not reported
		l.report(history.Lost)(h)
	}
	return Grant{Token: uint64(h.Token()), Deadline: h.Deadline()}, nil
}

// Renew fails: sessions are renewed by themselves, and their timeout cannot be changed.
func (l *zkMutex) Renew(context.Context, Hold, time.Duration) (Grant, error) {
	return Grant{}, ErrNotHeld
}

// Release releases the hold, or asks to release the last one again.
func (l *zkMutex) Release(ctx context.Context, what Hold) (int, error) {
	h := l.find(what)
	if h == nil {
		return 0, ErrNotHeld
	}
	err := h.Release(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, held := l.holds[h]; held && (err == nil || lock.Definite(err)) {
		delete(l.holds, h)
		l.ended = append(l.ended[max(0, len(l.ended)-maxEnded):], h)
	}
	return 0, err
}

// find is the hold that a request is about, or the last such one that has ended; nil if there was none.
func (l *zkMutex) find(what Hold) *zookeeper.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := func(h *zookeeper.Hold) bool { return h.Name() == what.Key && h.Owner() == what.Owner }
	for h := range l.holds { // in any order: an owner has one hold of a key
		if same(h) {
			return h
		}
	}
	for _, h := range slices.Backward(l.ended) {
		if same(h) {
			return h
		}
	}
	return nil
}

// Close ends the sessions, and so every hold.
func (l *zkMutex) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, c := range l.clients { // in any order: they are independent
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}
