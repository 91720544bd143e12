package client

import (
	"context"
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
				return openZK(s, notify, acquire, can.Has(Fenced))
			},
			CheckOptions: checkSession(optionSession),
			Definite:     lock.Definite, Undone: zookeeper.Undone, Code: lockCode,
		}
	}
	return []Spec{
		row("zk-mutex", "package lock/zookeeper's mutex: each acquire creates an ephemeral sequential node and waits "+
			"for the node before its own; a hold ends with its session.", "ZooKeeper Recipes and Solutions, Locks",
			Capabilities{Fenced}, acquireSessionMutex),
		row("zk-readers-writer", "package lock/zookeeper's readers-writer lock: a reader waits for earlier writers, a "+
			"writer for everyone before it; requests without a mode write.",
			"ZooKeeper Recipes and Solutions, Shared Locks", Capabilities{Fenced, SharesReads}, acquireSessionRW),
		row("zk-semaphore", "package lock/zookeeper's semaphore: a node for each request, granted when it and all requests "+
			"before it fit. It has one permit, unless the workload has more.",
			"Apache Curator, InterProcessSemaphoreV2, whose requests for several leases block each other",
			Capabilities{HasPermits, RefusesExcess}, acquireSessionPermits),
		row("zk-multi", "package lock/zookeeper's lock of several names, whose nodes one transaction creates and removes; "+
			"a request for one key takes two locks.", "Apache Curator, InterProcessMultiLock; ZooKeeper's multi (ZOOKEEPER-965)",
			Capabilities{Fenced, SeveralKeys}, acquireSessionMulti),
	}
}

type zkAcquire func(ctx context.Context, c *zookeeper.Client, a Acquire) (*zookeeper.Hold, error)

// zkSession is the session timeout where a request has no lease and a scenario sets none.
const zkSession = 4 * time.Second

// optionSession is the timeout of the session of holds that request no lease, which then begins before a request.
const optionSession = "session"

type zkLocker = sessionLocker[*zookeeper.Client, *zookeeper.Hold]

// openZK opens a locker on package lock/zookeeper.
func openZK(s Setup, notify func(Reply), acquire zkAcquire, tokens bool) (*zkLocker, error) {
	dial, err := dialer(s)
	if err != nil {
		return nil, err
	}
	l := &zkLocker{notify: notify, tokens: tokens, acquire: acquire, lease: zkSession}
	o := zookeeper.Options{
		Root: ZooKeeperRoot, Dial: dial, OnLost: l.report(history.Lost), OnRenewed: l.report(history.Renewed),
	}
	if err := sessionOptions(s.Options, optionSession, &l.lease, &o.Margin, &o.Timeout); err != nil {
		return nil, err
	}
	l.open = func(lease time.Duration) (*zookeeper.Client, error) {
		o := o
		o.Session = lease
		return zookeeper.Open(s.Endpoints.Addrs, o)
	}
	return l, l.prepare(s.Options[optionSession] != "")
}
