// Package zookeeper has the locks on ZooKeeper of the catalog. Read [Specs].
package zookeeper

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/internal/locks/session"
	"github.com/lockchaos/lockchaos/lock/zookeeper"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/topology"
)

// Specs are the locks on ZooKeeper: those of package lock/zookeeper, whose lease of a request is the timeout of the
// session, and the one of go-zookeeper.
func Specs() []client.Spec {
	b := session.Backend[*zookeeper.Client, *zookeeper.Hold]{
		Kind: session.Kind{Topology: topology.ZooKeeper, Length: optionSession}, Undone: zookeeper.Undone, Prepare: openZK,
	}
	return []client.Spec{
		b.Opens(b.Row("zk-mutex", "package lock/zookeeper's mutex: each acquire creates an ephemeral sequential node and waits "+
			"for the node before its own; a hold ends with its session.", "ZooKeeper Recipes and Solutions, Locks",
			promise.Fenced),
			func(c *zookeeper.Client, a client.Acquire) zkMutex { return c.Mutex(a.Key) }),
		b.Opens(b.Row("zk-readers-writer", "package lock/zookeeper's readers-writer lock: a reader waits for earlier writers, "+
			"a writer for everyone before it; requests without a mode write.",
			"ZooKeeper Recipes and Solutions, Shared Locks", promise.Fenced|promise.ReadWrite),
			func(c *zookeeper.Client, a client.Acquire) zkMutex { return session.Side(c.RW(a.Key), a) }),
		b.Opens(b.Row("zk-semaphore", "package lock/zookeeper's semaphore: a node for each request, granted when it and all "+
			"requests before it fit. It has one permit, unless the workload has more.",
			"Apache Curator, InterProcessSemaphoreV2, whose requests for several leases block each other",
			promise.Permits|promise.RefusesExcessPermits),
			func(c *zookeeper.Client, a client.Acquire) zkMutex {
				return session.Permits[*zookeeper.Hold]{Semaphore: c.Semaphore(a.Key, a.Limit), N: a.Permits}
			}),
		b.Opens(b.Row("zk-multi", "package lock/zookeeper's lock of several names, whose nodes one transaction creates and "+
			"removes; a request for one key takes two locks.",
			"Apache Curator, InterProcessMultiLock; ZooKeeper's multi (ZOOKEEPER-965)",
			promise.Fenced|promise.MultiKey),
			func(c *zookeeper.Client, a client.Acquire) zkMutex {
				first, more := session.Names(a)
				return c.Multi(first, more...)
			}),
		goZooKeeperSpec,
	}
}

type zkMutex = session.Mutex[*zookeeper.Hold]

// zkSession is the session timeout where a request has no lease and a scenario sets none.
const zkSession = 4 * time.Second

// optionSession is the timeout of the session of holds that request no lease, which then begins before a request.
const optionSession = "session"

type zkLocker = session.Locker[*zookeeper.Client, *zookeeper.Hold]

// openZK opens a locker on package lock/zookeeper.
func openZK(l *zkLocker, s client.Setup, lost, renewed func(*zookeeper.Hold)) error {
	dial, err := native.Dialer(s)
	if err != nil {
		return err
	}
	l.Lease = zkSession
	o := zookeeper.Options{Root: topology.ZooKeeperRoot, Dial: dial, OnLost: lost, OnRenewed: renewed}
	if err := session.Options(s.Options, optionSession, &l.Lease, &o.Margin, &o.Timeout); err != nil {
		return err
	}
	l.OpenClient = func(lease time.Duration) (*zookeeper.Client, error) {
		o := o
		o.Session = lease
		return zookeeper.Open(s.Endpoints.Addrs, o)
	}
	return nil
}
