// Package zookeeper opens the locks on ZooKeeper of the catalog. It is apart from package locks, so that programs that
// drive no lock on ZooKeeper do not link its client. Read [Opens].
package zookeeper

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/internal/locks/session"
	"github.com/lockchaos/lockchaos/lock/zookeeper"
	"github.com/lockchaos/lockchaos/topology"
)

// Opens returns a row of the catalog, which describes a lock on ZooKeeper, so that it can be opened. Other rows stay as
// they are.
func Opens(row client.Spec) client.Spec {
	b := session.Backend[*zookeeper.Client, *zookeeper.Hold]{
		Kind: session.Kind{Topology: topology.ZooKeeper, Length: native.OptionSession}, Undone: zookeeper.Undone,
		Prepare: openZK,
	}
	switch row.Name {
	case "zk-mutex":
		return b.Opens(row, func(c *zookeeper.Client, a client.Acquire) zkMutex { return c.Mutex(a.Key) })
	case "zk-readers-writer":
		return b.Opens(row, func(c *zookeeper.Client, a client.Acquire) zkMutex { return session.Side(c.RW(a.Key), a) })
	case "zk-semaphore":
		return b.Opens(row, func(c *zookeeper.Client, a client.Acquire) zkMutex {
			return session.Permits[*zookeeper.Hold]{Semaphore: c.Semaphore(a.Key, a.Limit), N: a.Permits}
		})
	case "zk-multi":
		return b.Opens(row, func(c *zookeeper.Client, a client.Acquire) zkMutex {
			first, more := session.Names(a)
			return c.Multi(first, more...)
		})
	case "go-zookeeper":
		row.Open = func(s client.Setup, _ func(client.Reply)) (client.Locker, error) { return openGoZooKeeper(s) }
	}
	return row
}

type zkMutex = session.Mutex[*zookeeper.Hold]

// zkSession is the session timeout where a request has no lease and a scenario sets none.
const zkSession = 4 * time.Second

type zkLocker = session.Locker[*zookeeper.Client, *zookeeper.Hold]

// openZK opens a locker on package lock/zookeeper.
func openZK(l *zkLocker, s client.Setup, lost, renewed func(*zookeeper.Hold)) error {
	dial, err := native.Dialer(s)
	if err != nil {
		return err
	}
	l.Lease = zkSession
	o := zookeeper.Options{Root: topology.ZooKeeperRoot, Dial: dial, Order: s.Order, OnLost: lost, OnRenewed: renewed}
	if err := session.Options(s.Options, native.OptionSession, &l.Lease, &o.Margin, &o.Timeout); err != nil {
		return err
	}
	l.OpenClient = func(lease time.Duration) (*zookeeper.Client, error) {
		o := o
		o.Session = lease
		return zookeeper.Open(s.Endpoints.Addrs, o)
	}
	return nil
}
