// Package etcd has locks on an etcd cluster, with the handles and errors of package lock:
//
//	etcdClient, err := clientv3.New(clientv3.Config{Endpoints: []string{"10.0.0.1:2379", "10.0.0.2:2379"}})
//	...
//	locks, err := etcd.Open(etcdClient, etcd.Options{})
//	...
//	hold, err := locks.Mutex("orders").Acquire(ctx, "worker 7")
//	...
//	defer hold.Release(ctx) // hold.Context() ends if the lock is lost
//
// The package has a [Mutex], a readers-writer lock ([RW]), a [Semaphore] and locks of several names ([Client.Multi]).
// Read [Client] first. The mutex is the recipe of etcd's own package concurrency: each acquire creates a key that
// ends with a lease, the key with the lowest create revision holds the lock, and every other request waits for the
// key before its own, so a release wakes one waiter. The differences from that package:
//
//   - A hold ends here when its lease may have ended at the servers: at its time to live, less a margin, after the last
//     keepalive that counted was sent.
//   - A keepalive counts only if a linearizable read afterwards has the term of the leader that answered it: a leader
//     that was replaced answers too (etcd#15247), and the new one does not know of it.
//   - If a waiter's turn comes when no keepalive has counted for half of the lease, as after a leader change, Acquire
//     returns only once the next one has counted: the hold would begin with little time left.
//   - Each acquire has a key of its own. In package concurrency the key belongs to the session, so two owners of one
//     session both hold the lock.
//   - If a creation got no reply, the key is removed, and a barrier key makes a creation that arrives late fail:
//     otherwise a key without an owner would hold the lock.
//   - A waiter looks for its own key before it holds the lock: its lease may have expired while it waited (etcd 3.4.3,
//     Jepsen).
//   - A release is resent until it gets a reply. A key that is gone at the first request is a lost hold, not a released
//     one.
//   - With Options.LeaderFirst, transactions go to the leader directly, where a client of etcd sends each to the next
//     endpoint, which forwards it.
//   - The fencing token is the create revision of the key. It grows with every grant, and decreases only if a majority
//     of the members loses its disks, or the cluster is restored from a backup.
//
// It imports go-redis, because the errors come from package lock, but no Redis server is needed.
package etcd
