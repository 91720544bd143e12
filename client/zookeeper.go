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

// zkSpecs are the locks of package lock/zookeeper. The lease of a request is the timeout of the session.
func zkSpecs() []Spec {
	row := func(name, doc, source string, can Capabilities, acquire zkAcquire) Spec {
		return Spec{
			Name: name, Doc: doc, Source: source, Topologies: []string{ZooKeeper},
			Can: Capabilities{CanTry, RenewsItself, ReportsLoss, Wakes, Fair}.With(can...),
			Open: func(s Setup, notify func(Reply)) (Locker, error) {
				return openZK(s, notify, zkKind{acquire, can.Has(Fenced)})
			},
			Definite: lock.Definite, Undone: zookeeper.Undone, Code: lockCode,
		}
	}
	return []Spec{
		row("zk-mutex", "package lock/zookeeper's mutex: each acquire creates an ephemeral sequential node and waits "+
			"for the node before its own; a hold ends with its session.", "ZooKeeper Recipes and Solutions, Locks",
			Capabilities{Fenced}, acquireZKMutex),
		row("zk-readers-writer", "package lock/zookeeper's readers-writer lock: a reader waits for earlier writers, a "+
			"writer for everyone before it; requests without a mode write.",
			"ZooKeeper Recipes and Solutions, Shared Locks", Capabilities{Fenced, SharesReads}, acquireZKRW),
		row("zk-semaphore", "package lock/zookeeper's semaphore: a node for each request, served in turn when it fits "+
			"beside those before it. It has one permit, unless the workload has more.",
			"Apache Curator, InterProcessSemaphoreV2, whose requests for several leases block each other",
			Capabilities{HasPermits, RefusesExcess}, acquireZKPermits),
		row("zk-multi", "package lock/zookeeper's lock of several names, whose nodes one transaction creates and removes; "+
			"a request for one key takes two locks.", "Apache Curator, InterProcessMultiLock; ZooKeeper's multi (ZOOKEEPER-965)",
			Capabilities{Fenced, SeveralKeys}, acquireZKMulti),
	}
}

// zkKind is a kind of lock of package lock/zookeeper.
type zkKind struct {
	acquire zkAcquire
	tokens  bool // grants have them
}

type zkAcquire func(ctx context.Context, c *zookeeper.Client, a Acquire) (*zookeeper.Hold, error)

func acquireZK(ctx context.Context, m *zookeeper.Mutex, a Acquire) (*zookeeper.Hold, error) {
	if a.Wait == 0 {
		return m.TryAcquire(ctx, a.Owner)
	}
	return m.Acquire(ctx, a.Owner)
}

func acquireZKMutex(ctx context.Context, c *zookeeper.Client, a Acquire) (*zookeeper.Hold, error) {
	return acquireZK(ctx, c.Mutex(a.Key), a)
}

func acquireZKRW(ctx context.Context, c *zookeeper.Client, a Acquire) (*zookeeper.Hold, error) {
	if a.Mode == "read" {
		return acquireZK(ctx, c.RW(a.Key).Read(), a)
	}
	return acquireZK(ctx, c.RW(a.Key).Write(), a)
}

func acquireZKMulti(ctx context.Context, c *zookeeper.Client, a Acquire) (*zookeeper.Hold, error) {
	if len(a.Keys) > 0 {
		return acquireZK(ctx, c.Multi(a.Keys[0], a.Keys[1:]...), a)
	}
	two := multiKeys(a.Key)
	return acquireZK(ctx, c.Multi(two[0], two[1]), a)
}

func acquireZKPermits(ctx context.Context, c *zookeeper.Client, a Acquire) (*zookeeper.Hold, error) {
	s := c.Semaphore(a.Key, a.Limit)
	if a.Wait == 0 {
		return s.TryAcquire(ctx, a.Owner, a.Permits)
	}
	return s.Acquire(ctx, a.Owner, a.Permits)
}

// zkSession is the session timeout where a request has no lease and a scenario sets none.
const zkSession = 4 * time.Second

const (
	optionSession = "session" // timeout of the session of holds that request no lease, which then begins before a request
	optionMargin  = "margin"  // by how much a hold ends before its session
)

// zkLocker is a [Locker] on package lock/zookeeper, with a client, and so a session, for each lease.
type zkLocker struct {
	zkKind
	servers []string
	options zookeeper.Options
	notify  func(Reply)

	mu      sync.Mutex
	clients map[time.Duration]*zookeeper.Client
	holds   []zkHold // that were granted and not released
	ended   []zkHold // the last that were released, for requests to release them again
}

// zkHold is a hold and what was requested.
type zkHold struct {
	*zookeeper.Hold
	what Hold
}

// is says whether a request is about h; one without a mode is about either.
func (h zkHold) is(what Hold) bool {
	own := h.what
	if what.Mode == "" {
		own.Mode = ""
	}
	return own.id() == what.id() && (what.Permits == 0 || what.Permits == own.Permits)
}

func openZK(s Setup, notify func(Reply), kind zkKind) (*zkLocker, error) {
	dial, err := dialer(s)
	if err != nil {
		return nil, err
	}
	l := &zkLocker{
		zkKind: kind, servers: s.Endpoints.Addrs, notify: notify, clients: map[time.Duration]*zookeeper.Client{},
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
	c, err := l.client(0) // refuses what is wrong before the first request
	if err == nil && s.Options[optionSession] != "" {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		_ = c.Connect(ctx) // requests try again
	}
	return l, err
}

// report returns a function that reports an event of a hold whose acquire has returned.
func (l *zkLocker) report(event string) func(*zookeeper.Hold) {
	return func(h *zookeeper.Hold) {
		l.mu.Lock()
		i := slices.IndexFunc(l.holds, func(one zkHold) bool { return one.Hold == h })
		if i < 0 {
			l.mu.Unlock()
			return
		}
		what := l.holds[i].what
		l.mu.Unlock()
		for _, key := range what.keys() {
			l.notify(Reply{Event: event, Key: key, Owner: what.Owner, Deadline: h.Deadline()})
		}
	}
}

// client is the client whose sessions have that timeout.
func (l *zkLocker) client(lease time.Duration) (*zookeeper.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.options
	if lease > 0 {
		o.Session = lease
	}
	lease = o.Session
	if c := l.clients[lease]; c != nil {
		return c, nil
	}
	c, err := zookeeper.Open(l.servers, o)
	if err == nil {
		l.clients[lease] = c
	}
	return c, err
}

// Acquire acquires the lock.
func (l *zkLocker) Acquire(ctx context.Context, a Acquire) (Grant, error) {
	c, err := l.client(a.Lease)
	if err != nil {
		return Grant{}, err
	}
	if a.Wait == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, readTimeout)
		defer cancel()
	}
	h, err := l.acquire(ctx, c, a)
	if err != nil {
		return Grant{}, err
	}
	l.mu.Lock()
	l.holds = append(l.holds, zkHold{h, a.hold()})
	l.mu.Unlock()
	if errors.Is(h.Err(), lock.ErrLost) { // before it was known: it was not reported
		l.report(history.Lost)(h)
	}
	g := Grant{Deadline: h.Deadline()}
	if l.tokens && a.Mode != "read" { // tokens of readers do not order them
		g.Token = uint64(h.Token())
	}
	return g, nil
}

// Renew fails: sessions are renewed by themselves, and their timeout cannot be changed.
func (l *zkLocker) Renew(context.Context, Hold, time.Duration) (Grant, error) {
	return Grant{}, ErrNotHeld
}

// Release releases the hold, or asks to release the last one again.
func (l *zkLocker) Release(ctx context.Context, what Hold) (int, error) {
	h, ok := l.find(what)
	if !ok {
		return 0, ErrNotHeld
	}
	err := h.Release(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	same := func(one zkHold) bool { return one.Hold == h.Hold }
	if i := slices.IndexFunc(l.holds, same); i >= 0 && (err == nil || lock.Definite(err)) {
		l.holds = slices.Delete(l.holds, i, i+1)
		l.ended = append(l.ended[max(0, len(l.ended)-maxEnded):], h)
	}
	return 0, err
}

// find is the latest hold that a request is about, or else the last such one that has ended.
func (l *zkLocker) find(what Hold) (zkHold, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range [][]zkHold{l.holds, l.ended} {
		for _, h := range slices.Backward(list) {
			if h.is(what) {
				return h, true
			}
		}
	}
	return zkHold{}, false
}

// Close ends the sessions, and so every hold.
func (l *zkLocker) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, c := range l.clients { // in any order: they are independent
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}
