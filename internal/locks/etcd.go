package locks

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/topology"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/lockchaos/lockchaos/lock/etcd"
)

// etcdSpecs are the locks of package lock/etcd. The lease of a request is that of etcd, in whole seconds.
func etcdSpecs() []client.Spec {
	row := sessionBackend[*etcd.Client, *etcd.Hold]{topology.Etcd, optionLease, etcd.Undone, openEtcd}.row
	const recipe = "etcd, client/v3/concurrency"
	return []client.Spec{
		row("etcd-mutex", "package lock/etcd's mutex: each acquire creates a key with a lease and waits for the key before "+
			"its own; a hold ends with its lease.", recipe,
			client.Capabilities{client.Fenced}, func(c *etcd.Client, a client.Acquire) etcdMutex { return c.Mutex(a.Key) }),
		row("etcd-readers-writer", "package lock/etcd's readers-writer lock: a reader waits for earlier writers, a "+
			"writer for everyone before it; requests without a mode write.", "etcd, client/v3/experimental/recipes, RWMutex",
			client.Capabilities{client.Fenced, client.SharesReads}, func(c *etcd.Client, a client.Acquire) etcdMutex { return sideFor(c.RW(a.Key), a) }),
		row("etcd-semaphore", "package lock/etcd's semaphore: a key for each request, granted when it and all requests "+
			"before it fit. It has one permit, unless the workload has more.", recipe,
			client.Capabilities{client.HasPermits, client.RefusesExcess}, func(c *etcd.Client, a client.Acquire) etcdMutex {
				return sessionPermits[*etcd.Hold]{c.Semaphore(a.Key, a.Limit), a.Permits}
			}),
		row("etcd-multi", "package lock/etcd's lock of several names, whose keys one transaction creates and removes; a "+
			"request for one key takes two locks.", "etcd documentation, API guarantees, transactions",
			client.Capabilities{client.Fenced, client.SeveralKeys}, func(c *etcd.Client, a client.Acquire) etcdMutex {
				first, more := sessionNames(a)
				return c.Multi(first, more...)
			}),
	}
}

type etcdMutex = sessionMutex[*etcd.Hold]

// etcdLease is the lease where a request has none and a scenario sets none.
const etcdLease = 4 * time.Second

// Pauses between attempts of gRPC to connect, which by default become two minutes.
const (
	etcdRedialMin = 20 * time.Millisecond
	etcdRedialMax = 200 * time.Millisecond
)

// connectEtcd makes a client of the cluster. It connects in the background.
func connectEtcd(s client.Setup) (*clientv3.Client, error) {
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

type etcdLocker = sessionLocker[*etcd.Client, *etcd.Hold]

// openEtcd opens a locker on package lock/etcd.
func openEtcd(l *etcdLocker, s client.Setup, lost, renewed func(*etcd.Hold)) error {
	l.lease = etcdLease
	o := etcd.Options{Root: topology.EtcdRoot, LeaderFirst: true, OnLost: lost, OnRenewed: renewed}
	if err := sessionOptions(s.Options, optionLease, &l.lease, &o.Margin, &o.Timeout); err != nil {
		return err
	}
	connection, err := connectEtcd(s)
	if err != nil {
		return err
	}
	l.close = connection.Close
	l.open = func(lease time.Duration) (*etcd.Client, error) {
		o := o
		o.Lease = lease
		return etcd.Open(connection, o)
	}
	return nil
}
