package etcd

import (
	"context"
	"slices"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
)

// traffic records which members execute the transactions of a client, and can refuse the ones of a member.
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

// refuse loses the replies of a member from now on.
func (r *traffic) refuse(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = addr
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

// TestLeaderFirst: with LeaderFirst, transactions go to the leader, and to the next one when another member becomes the
// leader. Those whose replies are lost are sent to other members.
func TestLeaderFirst(t *testing.T) {
	b := startMembers(t, 3)
	r := &traffic{}
	etcd := connectWith(t, b.admin.Endpoints(), r.option())
	c, err := Open(etcd, Options{Lease: sessiontest.ShortLease, LeaderFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	m := c.Mutex("orders")

	leader, follower, id := leaderOf(t, b)
	locktest.Eventually(t, sessiontest.Timeout, "all requests go to the leader", func() bool { return r.only(t, m, leader) })

	if _, err := connect(t, leader).MoveLeader(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	leader = follower
	locktest.Eventually(t, sessiontest.Timeout, "all go to the next leader", func() bool { return r.only(t, m, leader) })

	r.refuse(leader)
	locktest.Eventually(t, sessiontest.Timeout, "requests are sent to the leader and to others", func() bool {
		members := r.of(t, m)
		return slices.Contains(members, leader) && slices.ContainsFunc(members, func(addr string) bool { return addr != leader })
	})

	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.members {
		if state := m.conn.GetState(); state != connectivity.Shutdown {
			t.Errorf("a connection is %v after Close", state)
		}
	}
	etcd.KV = namespace.NewKV(etcd.KV, "app1/")
	if _, err := Open(etcd, Options{LeaderFirst: true}); err == nil {
		t.Error("requests may bypass a KV with a namespace")
	}
}

// TestLeads: the leader is a member that says so and that a majority follows.
func TestLeads(t *testing.T) {
	for name, tt := range map[string]struct {
		leader, reader uint64 // according to member 1, and the member that answers a linearizable read; 0: none
		want           bool
	}{
		"the leader":                         {1, 1, true},
		"a follower":                         {2, 1, false},
		"no leader":                          {0, 0, false},
		"a leader that has lost its quorum":  {1, 0, false},
		"a connection to a different member": {1, 2, false},
	} {
		m := &member{kv: reading{member: tt.reader}, status: claiming{leader: tt.leader}}
		if got := (&session{client: &Client{}}).leads(t.Context(), m); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// claiming is a member 1 that says who the leader is.
type claiming struct {
	etcdserverpb.MaintenanceClient
	leader uint64
}

func (c claiming) Status(
	context.Context, *etcdserverpb.StatusRequest, ...grpc.CallOption,
) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{Header: &etcdserverpb.ResponseHeader{MemberId: 1}, Leader: c.leader}, nil
}

// reading is a KV whose reads a member answers.
type reading struct {
	clientv3.KV
	member uint64
}

func (r reading) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if r.member == 0 {
		return nil, context.DeadlineExceeded
	}
	return &clientv3.GetResponse{Header: &etcdserverpb.ResponseHeader{MemberId: r.member}}, nil
}
