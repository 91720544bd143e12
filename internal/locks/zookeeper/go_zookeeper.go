package zookeeper

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/topology"
)

// goZooKeeper is a [Locker] on zk.Lock as programs use it: a connection, whose session is as long as the first lease,
// and a Lock for each request.
type goZooKeeper struct {
	servers []string
	dial    native.DialFunc

	mu    sync.Mutex
	conn  *zk.Conn // nil before the first request
	locks map[native.HoldID]*zk.Lock
}

func openGoZooKeeper(s client.Setup) (*goZooKeeper, error) {
	dial, err := native.Dialer(s)
	switch {
	case err != nil:
		return nil, err
	case len(s.Options) > 0:
		return nil, fmt.Errorf("setup: %w", native.ErrNoOptions)
	case len(s.Endpoints.Addrs) == 0:
		return nil, fmt.Errorf("setup: endpoints of topology %q have no address", s.Endpoints.Kind)
	}
	return &goZooKeeper{servers: s.Endpoints.Addrs, dial: dial, locks: map[native.HoldID]*zk.Lock{}}, nil
}

func (l *goZooKeeper) connection(session time.Duration) (*zk.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		return l.conn, nil
	}
	if session == 0 {
		session = zkSession
	}
	conn, _, err := zk.Connect(l.servers, session, zk.WithLogger(noLog{}), zk.WithLogInfo(false), zk.WithDialer(
		func(network, addr string, timeout time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			return l.dial(ctx, network, addr)
		}))
	if err == nil {
		l.conn = conn
	}
	return conn, err
}

// Acquire waits for the lock. Lock has no context: when ctx ends first, the lock is released as soon as it is granted.
func (l *goZooKeeper) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	conn, err := l.connection(a.Lease)
	if err != nil {
		return client.Grant{}, err
	}
	one := zk.NewLock(conn, topology.ZooKeeperRoot+"/"+a.Key, zk.WorldACL(zk.PermAll))
	locked := make(chan error, 1)
	go func() { locked <- one.LockWithData([]byte(a.Owner)) }()
	select {
	case err = <-locked:
	case <-ctx.Done():
		go func() {
			if <-locked == nil {
				_ = one.Unlock()
			}
		}()
		err = ctx.Err()
	}
	if err != nil {
		return client.Grant{}, fmt.Errorf("lock: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locks[native.IDOf(a.Hold())] = one
	return client.Grant{}, nil
}

// Renew fails: there is no such operation.
func (l *goZooKeeper) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

// Release releases the lock.
func (l *goZooKeeper) Release(ctx context.Context, h client.Hold) (int, error) {
	l.mu.Lock()
	one := l.locks[native.IDOf(h)]
	delete(l.locks, native.IDOf(h))
	l.mu.Unlock()
	if one == nil {
		return 0, client.ErrNotHeld
	}
	unlocked := make(chan error, 1)
	go func() { unlocked <- one.Unlock() }()
	select {
	case err := <-unlocked:
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Close ends the session.
func (l *goZooKeeper) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.Close()
	}
	return nil
}

// noLog keeps go-zookeeper from logging every lost connection.
type noLog struct{}

func (noLog) Printf(string, ...any) {}
