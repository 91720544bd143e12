package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/etcd"
)

// etcdMutexSpec is the mutex of package lock/etcd. The lease of a request is that of etcd, in whole seconds.
var etcdMutexSpec = Spec{
	Name: "etcd-mutex",
	Doc: "package lock/etcd's mutex: each acquire creates a key with a lease and waits for the key before its own; a " +
		"hold ends with its lease.",
	Source:     "etcd, client/v3/concurrency",
	Topologies: []string{Etcd},
	Can:        Capabilities{CanTry, RenewsItself, ReportsLoss, Wakes, Fair, Fenced},
	Open:       func(s Setup, notify func(Reply)) (Locker, error) { return openEtcdMutex(s, notify) },
	Definite:   lock.Definite,
	Undone:     etcd.Undone,
	Code:       lockCode,
}

// etcdLease is the lease where a request has none and a scenario sets none.
const etcdLease = 4 * time.Second

// Pauses between attempts of gRPC to connect, which by default become two minutes.
const (
	etcdRedialMin = 20 * time.Millisecond
	etcdRedialMax = 200 * time.Millisecond
)

// connectEtcd makes a client of the cluster. It connects in the background.
func connectEtcd(s Setup) (*clientv3.Client, error) {
	dial, err := dialer(s)
	switch {
	case err != nil:
		return nil, err
	case len(s.Endpoints.Addrs) == 0:
		return nil, fmt.Errorf("setup: endpoints of topology %q have no address", s.Endpoints.Kind)
	}
	return clientv3.New(clientv3.Config{
		Endpoints: s.Endpoints.Addrs, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dial(ctx, "tcp", addr) }),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: etcdRedialMin, Multiplier: 2, MaxDelay: etcdRedialMax},
				MinConnectTimeout: dialTimeout,
			}),
		},
	})
}

// etcdMutex is a [Locker] on package lock/etcd, with a client, and so a lease, for each lease that is requested.
type etcdMutex struct {
	etcd    *clientv3.Client
	options etcd.Options
	notify  func(Reply)

	mu      sync.Mutex
	clients map[time.Duration]*etcd.Client
	holds   map[*etcd.Hold]struct{} // that were granted and not released
	ended   []*etcd.Hold            // the last that were released, for requests to release them again
}

func openEtcdMutex(s Setup, notify func(Reply)) (*etcdMutex, error) {
	l := &etcdMutex{notify: notify, clients: map[time.Duration]*etcd.Client{}, holds: map[*etcd.Hold]struct{}{}}
	l.options = etcd.Options{
		Lease: etcdLease, Root: EtcdRoot, OnLost: l.report(history.Lost), OnRenewed: l.report(history.Renewed),
	}
	for name, text := range s.Options { // order does not matter: they are independent
		var err error
		switch name {
		case optionLease:
			l.options.Lease, err = positive(name, text)
		case optionMargin:
			l.options.Margin, err = positive(name, text)
		case optionTimeout:
			l.options.Timeout, err = positive(name, text)
		default:
			err = fmt.Errorf("unknown option %q; this lock has %s, %s and %s", name, optionLease, optionMargin, optionTimeout)
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	if l.etcd, err = connectEtcd(s); err == nil {
		_, err = l.client(0) // refuses what is wrong before the first request
	}
	return l, err
}

// report returns a function that reports an event of a hold whose acquire has returned.
func (l *etcdMutex) report(event string) func(*etcd.Hold) {
	return func(h *etcd.Hold) {
		l.mu.Lock()
		_, known := l.holds[h]
		l.mu.Unlock()
		if known {
			l.notify(Reply{Event: event, Key: h.Name(), Owner: h.Owner(), Deadline: h.Deadline()})
		}
	}
}

// client is the client whose leases have that length.
func (l *etcdMutex) client(lease time.Duration) (*etcd.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clients[lease]; c != nil {
		return c, nil
	}
	o := l.options
	if lease > 0 {
		o.Lease = lease
	}
	c, err := etcd.Open(l.etcd, o)
	if err == nil {
		l.clients[lease] = c
	}
	return c, err
}

// Acquire acquires the lock.
func (l *etcdMutex) Acquire(ctx context.Context, a Acquire) (Grant, error) {
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

// Renew fails: leases are renewed by themselves, and their length cannot be changed.
func (l *etcdMutex) Renew(context.Context, Hold, time.Duration) (Grant, error) {
	return Grant{}, ErrNotHeld
}

// Release releases the hold, or asks to release the last one again.
func (l *etcdMutex) Release(ctx context.Context, what Hold) (int, error) {
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
func (l *etcdMutex) find(what Hold) *etcd.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := func(h *etcd.Hold) bool { return h.Name() == what.Key && h.Owner() == what.Owner }
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

// Close ends the leases, and so every hold.
func (l *etcdMutex) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, c := range l.clients { // in any order: they are independent
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(append(errs, l.etcd.Close())...)
}
