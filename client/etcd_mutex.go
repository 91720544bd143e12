package client

import (
	"context"
	"fmt"
	"net"
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
	Source:       "etcd, client/v3/concurrency",
	Topologies:   []string{Etcd},
	Can:          Capabilities{CanTry, RenewsItself, ReportsLoss, Wakes, Fair, Fenced},
	Open:         func(s Setup, notify func(Reply)) (Locker, error) { return openEtcdMutex(s, notify) },
	CheckOptions: checkSession(optionLease),
	Definite:     lock.Definite,
	Undone:       etcd.Undone,
	Code:         lockCode,
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

type etcdLocker = sessionLocker[*etcd.Client, *etcd.Hold]

// openEtcdMutex opens a locker on package lock/etcd.
func openEtcdMutex(s Setup, notify func(Reply)) (*etcdLocker, error) {
	l := &etcdLocker{notify: notify, tokens: true, acquire: acquireEtcdMutex, lease: etcdLease}
	o := etcd.Options{Root: EtcdRoot, OnLost: l.report(history.Lost), OnRenewed: l.report(history.Renewed)}
	if err := sessionOptions(s.Options, optionLease, &l.lease, &o.Margin, &o.Timeout); err != nil {
		return nil, err
	}
	connection, err := connectEtcd(s)
	if err != nil {
		return nil, err
	}
	l.close = connection.Close
	l.open = func(lease time.Duration) (*etcd.Client, error) {
		o := o
		o.Lease = lease
		return etcd.Open(connection, o)
	}
	_, err = l.client(0) // refuses what is wrong before the first request
	return l, err
}

func acquireEtcdMutex(ctx context.Context, c *etcd.Client, a Acquire) (*etcd.Hold, error) {
	return acquireMutex(ctx, c.Mutex(a.Key), a)
}
