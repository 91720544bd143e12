package etcd

import (
	"context"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/lockchaos/lockchaos/lock/internal/sessiontest"
	"github.com/lockchaos/lockchaos/lock/locktest"
)

// traffic records which members execute the transactions of a client, and can refuse those of one.
type traffic struct {
	mu      sync.Mutex
	members []string
	refused string // the address of a member whose replies are lost
}

func (r *traffic) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn,
		call grpc.UnaryInvoker, o ...grpc.CallOption) error {
		var p peer.Peer
		err := call(ctx, method, in, out, conn, append(o, grpc.Peer(&p))...)
		if method != "/etcdserverpb.KV/Txn" || p.Addr == nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.members = append(r.members, p.Addr.String())
		if r.refused == p.Addr.String() {
			return status.Error(codes.Unavailable, "the reply is lost")
		}
		return err
	})
}

// of returns the members that have executed the transactions of some pairs of the mutex.
func (r *traffic) of(t *testing.T, m *Mutex) []string {
	t.Helper()
	r.mu.Lock()
	r.members = nil
	r.mu.Unlock()
	for range 3 {
		sessiontest.Release(t, sessiontest.Acquire(t, m.Acquire, "a"))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members
}

// only reports whether pairs of the mutex send their transactions to one member and no other.
func (r *traffic) only(t *testing.T, m *Mutex, addr string) bool {
	t.Helper()
	members := r.of(t, m)
	for _, got := range members {
		if got != addr {
			return false
		}
	}
	return len(members) > 0
}

// leaderOf is the address of the leader, and of a follower with its id.
func leaderOf(t *testing.T, b *backend) (leader, follower string, id uint64) {
	t.Helper()
	locktest.Eventually(t, sessiontest.Timeout, "a member is the leader", func() bool {
		leader, follower = "", ""
		for _, addr := range b.admin.Endpoints() {
			reply, err := b.admin.Status(t.Context(), addr)
			switch {
			case err != nil:
			case reply.Leader == reply.Header.MemberId:
				leader = addr
			default:
				follower, id = addr, reply.Header.MemberId
			}
		}
		return leader != "" && follower != ""
	})
	return leader, follower, id
}

// TestRequestsGoToTheLeader: the transactions of a session go to the leader, and to the next one when another member
// becomes the leader; if its replies are lost, to the others.
func TestRequestsGoToTheLeader(t *testing.T) {
	b := startMembers(t, 3)
	r := &traffic{}
	c, err := Open(connectWith(t, b.admin.Endpoints(), r.option()), Options{Lease: sessiontest.ShortLease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	m := c.Mutex("orders")

	leader, follower, id := leaderOf(t, b)
	locktest.Eventually(t, sessiontest.Timeout, "all requests go to the leader", func() bool { return r.only(t, m, leader) })

	to, err := clientv3.New(clientv3.Config{Endpoints: []string{leader}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	if _, err := to.MoveLeader(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	leader = follower
	locktest.Eventually(t, sessiontest.Timeout, "all go to the next leader", func() bool { return r.only(t, m, leader) })

	r.mu.Lock()
	r.refused = leader
	r.mu.Unlock()
	for range 3 { // each is served, although the leader seems not to reply
		sessiontest.Release(t, sessiontest.Acquire(t, m.Acquire, "a"))
	}
}

// TestNamespaceIsKept: a KV that adds a prefix to the keys of a client is used for all requests.
func TestNamespaceIsKept(t *testing.T) {
	b := startMembers(t, 3)
	etcd := connectWith(t, b.admin.Endpoints())
	etcd.KV = namespace.NewKV(etcd.KV, "app1")
	etcd.Watcher = namespace.NewWatcher(etcd.Watcher, "app1")
	etcd.Lease = namespace.NewLease(etcd.Lease, "app1")
	c, err := Open(etcd, Options{Lease: sessiontest.LongLease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	if c.direct {
		t.Error("requests may bypass the KV of the user")
	}
	h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
	found, err := b.admin.Get(t.Context(), "app1"+defaultRoot, clientv3.WithPrefix())
	all, err2 := b.admin.Get(t.Context(), "", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	if err != nil || err2 != nil || len(found.Kvs) == 0 {
		t.Fatalf("no key with the prefix: %v, %v", err, err2)
	}
	for _, kv := range all.Kvs {
		if !strings.HasPrefix(string(kv.Key), "app1") {
			t.Errorf("key %q has no prefix", kv.Key)
		}
	}
	sessiontest.Release(t, h)
}
