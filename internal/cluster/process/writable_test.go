package process

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/topology"
)

// setWritable sets whether the lock "orders" of an ensemble is writable, at any member.
func setWritable(t *testing.T, c *Cluster, writable bool) {
	t.Helper()
	node := c.Nodes()[len(c.Nodes())-1].Name
	waitFor(t, "the rights to be changed", func() bool {
		changed, err := c.SetWritable(t.Context(), node, "orders", writable)
		return changed && err == nil
	})
}

// TestSetWritableOnZooKeeper: nodes below that of a lock are neither created nor deleted until it is writable again.
func TestSetWritableOnZooKeeper(t *testing.T) {
	skipEnsemble(t)
	c := ensembleUp(t, cluster.Topology{Kind: cluster.ZooKeeper})
	if changed, err := c.SetWritable(t.Context(), "n1", "orders", false); changed || err != nil {
		t.Errorf("a lock without a node: %v, %v", changed, err)
	}
	var addrs []string
	for _, s := range c.nodes {
		addrs = append(addrs, s.location.target())
	}
	conn, _, err := zk.Connect(addrs, time.Minute, zk.WithLogInfo(false), zk.WithDialer(net.DialTimeout))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const lock = topology.ZooKeeperRoot + "/orders"
	create := func(path string) error {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		return err
	}
	if err := errors.Join(create(topology.ZooKeeperRoot), create(lock), create(lock+"/a")); err != nil {
		t.Fatal(err)
	}
	// A follower may reply before the leader has executed the change. Until then, the leader checks the old rights
	// (ZooKeeper's PrepRequestProcessor keeps them in the record of the change).
	created := 0
	expect := func(want error) {
		t.Helper()
		waitFor(t, fmt.Sprintf("a creation: %v", want), func() bool {
			created++
			return errors.Is(create(fmt.Sprint(lock, "/b", created)), want)
		})
	}
	setWritable(t, c, false)
	expect(zk.ErrNoAuth)
	if err := conn.Delete(lock+"/a", -1); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("a deletion: %v", err)
	}
	setWritable(t, c, true)
	expect(nil)
	if err := conn.Delete(lock+"/a", -1); err != nil {
		t.Errorf("a deletion afterwards: %v", err)
	}
}

// TestSetWritableOnEtcd: puts are refused and deletions executed until the database has room again.
func TestSetWritableOnEtcd(t *testing.T) {
	c, ctx := etcdUp(t), t.Context()
	var addrs []string
	for _, s := range c.nodes {
		addrs = append(addrs, s.location.target())
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: addrs, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	key := topology.EtcdRoot + "/orders/a"
	put := func() error {
		_, err := client.Put(ctx, key, "")
		return err
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	setWritable(t, c, false)
	waitFor(t, "puts to be refused", func() bool { return errors.Is(put(), rpctypes.ErrNoSpace) })
	if reply, err := client.Delete(ctx, key); err != nil || reply.Deleted != 1 {
		t.Errorf("a deletion: %v, %v", reply, err)
	}
	setWritable(t, c, true)
	waitFor(t, "puts to be executed", func() bool { return put() == nil })
}
