// Package etcd opens the locks on etcd of the catalog. It is apart from package locks, so that programs that drive no
// lock on etcd do not link its client. Read [Opens].
package etcd

import (
	"context"
	"fmt"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/internal/locks/session"
	"github.com/lockchaos/lockchaos/lock/etcd"
	"github.com/lockchaos/lockchaos/topology"
)

// Opens returns a row of the catalog, which describes a lock on etcd, so that it can be opened. Other rows stay as they
// are.
func Opens(row client.Spec) client.Spec {
	b := session.Backend[*etcd.Client, *etcd.Hold]{
		Kind: session.Kind{Topology: topology.Etcd, Length: native.OptionLease}, Undone: etcd.Undone, Prepare: openEtcd,
	}
	switch row.Name {
	case "etcd-mutex":
		return b.Opens(row, func(c *etcd.Client, a client.Acquire) etcdMutex { return c.Mutex(a.Key) })
	case "etcd-readers-writer":
		return b.Opens(row, func(c *etcd.Client, a client.Acquire) etcdMutex { return session.Side(c.RW(a.Key), a) })
	case "etcd-semaphore":
		return b.Opens(row, func(c *etcd.Client, a client.Acquire) etcdMutex {
			return session.Permits[*etcd.Hold]{Semaphore: c.Semaphore(a.Key, a.Limit), N: a.Permits}
		})
	case "etcd-multi":
		return b.Opens(row, func(c *etcd.Client, a client.Acquire) etcdMutex {
			first, more := session.Names(a)
			return c.Multi(first, more...)
		})
	case "etcd":
		return openConcurrency(row)
	}
	return row
}

type etcdMutex = session.Mutex[*etcd.Hold]

// etcdLease is the lease where a request has none and a scenario sets none.
const etcdLease = 4 * time.Second

// Pauses between attempts of gRPC to connect, which by default become two minutes.
const (
	etcdRedialMin = 20 * time.Millisecond
	etcdRedialMax = 200 * time.Millisecond
)

// connectEtcd makes a client of the cluster. It connects in the background.
func connectEtcd(s client.Setup) (*clientv3.Client, error) {
	dial, err := native.Dialer(s)
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
				MinConnectTimeout: native.DialTimeout,
			}),
		},
	})
}

type etcdLocker = session.Locker[*etcd.Client, *etcd.Hold]

// openEtcd opens a locker on package lock/etcd.
func openEtcd(l *etcdLocker, s client.Setup, lost, renewed func(*etcd.Hold)) error {
	l.Lease = etcdLease
	o := etcd.Options{Root: topology.EtcdRoot, LeaderFirst: true, OnLost: lost, OnRenewed: renewed}
	if err := session.Options(s.Options, native.OptionLease, &l.Lease, &o.Margin, &o.Timeout); err != nil {
		return err
	}
	connection, err := connectEtcd(s)
	if err != nil {
		return err
	}
	l.CloseShared = connection.Close
	l.OpenClient = func(lease time.Duration) (*etcd.Client, error) {
		o := o
		o.Lease = lease
		return etcd.Open(connection, o)
	}
	return nil
}
