package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/topology"
)

// openConcurrency is the row of the mutex that the etcd client for Go has itself.
func openConcurrency(row client.Spec) client.Spec {
	row.Open = func(s client.Setup, notify func(client.Reply)) (client.Locker, error) {
		return openEtcdConcurrency(s, notify)
	}
	row.Definite = func(err error) bool {
		return errors.Is(err, concurrency.ErrLocked) || errors.Is(err, client.ErrNotHeld)
	}
	row.Code = func(err error) string {
		if errors.Is(err, concurrency.ErrLocked) {
			return "held"
		}
		return native.Code(err)
	}
	return row
}

// etcdConcurrency is a [Locker] on concurrency.Mutex as programs use it: a session, whose lease is as long as the first
// that is requested, and a Mutex for each request. The loss of a hold is reported as the package does, by Session.Done.
type etcdConcurrency struct {
	etcd   *clientv3.Client
	notify func(client.Reply)

	mu      sync.Mutex
	session *concurrency.Session // nil before the first request, and after it has ended
	holds   map[native.HoldID]*concurrency.Mutex
}

func openEtcdConcurrency(s client.Setup, notify func(client.Reply)) (*etcdConcurrency, error) {
	if err := native.CheckNoOptions(s.Options); err != nil {
		return nil, fmt.Errorf("setup: %w", err)
	}
	c, err := connectEtcd(s)
	return &etcdConcurrency{etcd: c, notify: notify, holds: map[native.HoldID]*concurrency.Mutex{}}, err
}

func (l *etcdConcurrency) open(ctx context.Context, lease time.Duration) (*concurrency.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil {
		return l.session, nil
	}
	if lease == 0 {
		lease = etcdLease
	}
	// the context of a session ends it, and is not a request's; the grant of its lease has no other
	granted, err := l.etcd.Grant(ctx, int64((lease+time.Second-1)/time.Second))
	if err != nil {
		return nil, fmt.Errorf("grant a lease: %w", err)
	}
	s, err := concurrency.NewSession(l.etcd, concurrency.WithLease(granted.ID))
	if err == nil {
		l.session = s
		go l.watch(s)
	}
	return s, err
}

// watch reports the loss of all holds when their session ends.
func (l *etcdConcurrency) watch(s *concurrency.Session) {
	<-s.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = nil
	for id := range l.holds { // in any order: they are independent
		l.notify(client.Reply{Event: history.Lost, Key: id.Key, Owner: id.Owner})
	}
	clear(l.holds)
}

// Acquire waits for the lock.
func (l *etcdConcurrency) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	s, err := l.open(ctx, a.Lease)
	if err != nil {
		return client.Grant{}, err
	}
	m := concurrency.NewMutex(s, topology.EtcdRoot+"/"+a.Key)
	acquire := m.Lock
	if a.Wait == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, native.RequestTimeout)
		defer cancel()
		acquire = m.TryLock
	}
	if err := acquire(ctx); err != nil {
		return client.Grant{}, fmt.Errorf("lock: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds[native.IDOf(a.Hold())] = m
	return client.Grant{Token: uint64(m.Header().Revision)}, nil
}

// Renew fails: there is no such operation.
func (l *etcdConcurrency) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

// Release releases the lock.
func (l *etcdConcurrency) Release(ctx context.Context, h client.Hold) (int, error) {
	l.mu.Lock()
	m := l.holds[native.IDOf(h)]
	delete(l.holds, native.IDOf(h))
	l.mu.Unlock()
	if m == nil {
		return 0, client.ErrNotHeld
	}
	return 0, m.Unlock(ctx)
}

// Close ends the session.
func (l *etcdConcurrency) Close(context.Context) error {
	l.mu.Lock()
	s := l.session
	clear(l.holds)
	l.mu.Unlock()
	var err error
	if s != nil {
		err = s.Close()
	}
	return errors.Join(err, l.etcd.Close())
}
