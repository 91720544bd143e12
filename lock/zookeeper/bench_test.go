package zookeeper

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/internal/testkit/zookeepertest"
)

// BenchmarkAlternate compares the mutex with the one of go-zookeeper, connected to the same one of three members.
func BenchmarkAlternate(b *testing.B) {
	addrs := zookeepertest.StartEnsemble(b, 3)[:1]
	c, err := Open(addrs, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close(b.Context()) })
	conn, _, err := zk.Connect(addrs, defaultSession, zk.WithLogger(silent{}))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	var h *Hold
	ctx, ours, theirs := b.Context(), c.Mutex("orders"), zk.NewLock(conn, "/theirs/orders", zk.WorldACL(zk.PermAll))
	sessiontest.Alternate(b,
		sessiontest.Pair{
			Name:    "zk-mutex",
			Acquire: func() (err error) { h, err = ours.Acquire(ctx, "a"); return err },
			Release: func() error { return h.Release(ctx) },
		},
		sessiontest.Pair{Name: "go-zookeeper", Acquire: theirs.Lock, Release: theirs.Unlock})
}
