// Package etcd is a mutex on an etcd cluster, with the handles and errors of package lock:
//
//	etcdClient, err := clientv3.New(clientv3.Config{Endpoints: []string{"10.0.0.1:2379", "10.0.0.2:2379"}})
//	...
//	locks, err := etcd.Open(etcdClient, etcd.Options{})
//	...
//	hold, err := locks.Mutex("orders").Acquire(ctx, "worker 7")
//	...
//	defer hold.Release(ctx) // hold.Context() ends if the lock is lost
//
// Read [Client] first. It is the recipe of etcd's own package concurrency: each acquire creates a key that ends with a
// lease, the key with the lowest create revision holds the lock, and every other waits for the key before its own, so
// that a release wakes one waiter. What that package leaves to its users, or gets wrong:
//
//   - A hold ends here when its lease may have ended at the servers: at its time to live, less a margin, after the
//     sending of the last sign of life that counted.
//   - A sign of life counts only if the term of the leader that took it was still the current one afterwards, as a
//     majority confirms: a leader that was replaced answers too (etcd#15247), and the new one does not know of it.
//   - A waiter that is served when no sign of life has counted for half of the lease, as after a change of the leader,
//     holds the lock only when the next one has counted: it would begin with little time left.
//   - Each acquire has a key of its own. In package concurrency the key is that of the session, so two owners of one
//     session both hold the lock.
//   - A key whose creation was not answered is removed, and a mark is left with which a creation that arrives late is
//     refused: the key would hold the lock for nobody.
//   - A waiter looks for its own key before it holds the lock: it may have waited longer than its lease lived (etcd
//     3.4.3, Jepsen).
//   - A release asks again until it is answered. A key that is gone at the first request is a lost hold, not a released
//     one.
//   - The fencing token is the create revision of the key. It grows with every grant, and goes back only if a majority
//     of the members loses its disks, or the cluster is restored from a backup.
//
// It imports go-redis, because the errors are those of package lock, but no Redis server is needed.
package etcd
