// Package zookeeper has locks on a ZooKeeper ensemble, with the handles and errors of package lock:
//
//	locks, err := zookeeper.Open([]string{"10.0.0.1:2181", "10.0.0.2:2181", "10.0.0.3:2181"}, zookeeper.Options{})
//	...
//	hold, err := locks.Mutex("orders").Acquire(ctx, "worker 7")
//	...
//	defer hold.Release(ctx) // hold.Context() ends if the lock is lost
//
// The package has a [Mutex], a readers-writer lock ([RW]), a [Semaphore] and locks of several names ([Client.Multi]).
// Read [Client] first. The mutex is the recipe of the ZooKeeper documentation (Recipes, Locks): each acquire creates
// an ephemeral sequential node, the one with the lowest number holds the lock, and every other request waits for the
// node before its own, so a release wakes one waiter. The recipe leaves these points open:
//
//   - A hold ends here when its session may have ended at the servers: at the session timeout, less a margin, after the
//     sending of the last request that was answered. A client that is cut off learns of the expiry of its session only
//     when it is connected again, and then another holds the lock already.
//   - A node whose creation was not answered is looked for and removed: it would hold the lock for nobody.
//   - A release asks again until it is answered. A node that is gone is a lost hold, not a released one, unless an
//     earlier request of the release has left its mark: an ephemeral node that is written with the deletion.
//   - The fencing token is the czxid of the node. It grows with every grant, and goes back only if a majority of the
//     servers loses its disks.
//
// It imports go-redis, because the errors come from package lock, but no Redis server is needed.
package zookeeper
