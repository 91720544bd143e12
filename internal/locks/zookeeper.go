package locks

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/topology"

	"github.com/lockchaos/lockchaos/lock/zookeeper"
)

// zkSpecs are the locks of package lock/zookeeper. The lease of a request is the timeout of the session.
func zkSpecs() []client.Spec {
	row := sessionBackend[*zookeeper.Client, *zookeeper.Hold]{topology.ZooKeeper, optionSession, zookeeper.Undone, openZK}.row
	return []client.Spec{
		row("zk-mutex", "package lock/zookeeper's mutex: each acquire creates an ephemeral sequential node and waits "+
			"for the node before its own; a hold ends with its session.", "ZooKeeper Recipes and Solutions, Locks",
			client.Capabilities{client.Fenced}, func(c *zookeeper.Client, a client.Acquire) zkMutex { return c.Mutex(a.Key) }),
		row("zk-readers-writer", "package lock/zookeeper's readers-writer lock: a reader waits for earlier writers, a "+
			"writer for everyone before it; requests without a mode write.",
			"ZooKeeper Recipes and Solutions, Shared Locks", client.Capabilities{client.Fenced, client.SharesReads},
			func(c *zookeeper.Client, a client.Acquire) zkMutex { return sideFor(c.RW(a.Key), a) }),
		row("zk-semaphore", "package lock/zookeeper's semaphore: a node for each request, granted when it and all requests "+
			"before it fit. It has one permit, unless the workload has more.",
			"Apache Curator, InterProcessSemaphoreV2, whose requests for several leases block each other",
			client.Capabilities{client.HasPermits, client.RefusesExcess}, func(c *zookeeper.Client, a client.Acquire) zkMutex {
				return sessionPermits[*zookeeper.Hold]{c.Semaphore(a.Key, a.Limit), a.Permits}
			}),
		row("zk-multi", "package lock/zookeeper's lock of several names, whose nodes one transaction creates and removes; "+
			"a request for one key takes two locks.", "Apache Curator, InterProcessMultiLock; ZooKeeper's multi (ZOOKEEPER-965)",
			client.Capabilities{client.Fenced, client.SeveralKeys}, func(c *zookeeper.Client, a client.Acquire) zkMutex {
				first, more := sessionNames(a)
				return c.Multi(first, more...)
			}),
	}
}

type zkMutex = sessionMutex[*zookeeper.Hold]

// zkSession is the session timeout where a request has no lease and a scenario sets none.
const zkSession = 4 * time.Second

// optionSession is the timeout of the session of holds that request no lease, which then begins before a request.
const optionSession = "session"

type zkLocker = sessionLocker[*zookeeper.Client, *zookeeper.Hold]

// openZK opens a locker on package lock/zookeeper.
func openZK(l *zkLocker, s client.Setup, lost, renewed func(*zookeeper.Hold)) error {
	dial, err := dialer(s)
	if err != nil {
		return err
	}
	l.lease = zkSession
	o := zookeeper.Options{Root: topology.ZooKeeperRoot, Dial: dial, OnLost: lost, OnRenewed: renewed}
	if err := sessionOptions(s.Options, optionSession, &l.lease, &o.Margin, &o.Timeout); err != nil {
		return err
	}
	l.open = func(lease time.Duration) (*zookeeper.Client, error) {
		o := o
		o.Session = lease
		return zookeeper.Open(s.Endpoints.Addrs, o)
	}
	return nil
}
