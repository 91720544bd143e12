package etcd

import (
	"testing"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
)

// BenchmarkAlternate compares the mutex with the one of etcd's client on the same three members, over one connection.
func BenchmarkAlternate(b *testing.B) {
	servers, ctx := startMembers(b, 3), b.Context()
	c, err := Open(servers.admin, Options{LeaderFirst: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close(b.Context()) })
	if err := c.Connect(ctx); err != nil {
		b.Fatal(err)
	}
	session, err := concurrency.NewSession(servers.admin, concurrency.WithTTL(int(defaultLease.Seconds())))
	if err != nil {
		b.Fatal(err)
	}
	var h *Hold
	ours, theirs := c.Mutex("orders"), concurrency.NewMutex(session, "/theirs/orders")
	sessiontest.Alternate(b,
		sessiontest.Pair{
			Name:    "etcd-mutex",
			Acquire: func() (err error) { h, err = ours.Acquire(ctx, "a"); return err },
			Release: func() error { return h.Release(ctx) },
		},
		sessiontest.Pair{
			Name:    "etcd",
			Acquire: func() error { return theirs.Lock(ctx) },
			Release: func() error { return theirs.Unlock(ctx) },
		})
}
