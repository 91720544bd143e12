package etcd

import (
	"context"
	"fmt"
	"reflect"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// member is a member of the cluster with a connection of its own, for requests to the leader. No guarantee depends on
// it: a request without a reply is sent again on the connection of the user's client, and a member that is no longer
// the leader forwards requests.
type member struct {
	conn   *grpc.ClientConn
	kv     clientv3.KV
	status etcdserverpb.MaintenanceClient
}

// connect makes connections to all endpoints of the user's client, with its settings. Each connects when it is used.
func (c *Client) connect() error {
	if reflect.TypeOf(c.etcd.KV) != reflect.TypeOf(clientv3.NewKVFromKVClient(nil, nil)) {
		return fmt.Errorf("open an etcd lock client: LeaderFirst would bypass the KV of the etcd client, which is a %T",
			c.etcd.KV)
	}
	for _, endpoint := range c.etcd.Endpoints() {
		conn, err := c.etcd.Dial(endpoint)
		if err != nil {
			c.disconnect()
			return fmt.Errorf("open an etcd lock client: %w", err)
		}
		c.members = append(c.members, &member{
			conn: conn, kv: clientv3.NewKVFromKVClient(etcdserverpb.NewKVClient(conn), c.etcd),
			status: etcdserverpb.NewMaintenanceClient(conn),
		})
	}
	return nil
}

func (c *Client) disconnect() {
	for _, m := range c.members {
		_ = m.conn.Close()
	}
}

// target is where a request is sent first: to the leader if it is known; nil: it is not.
func (s *session) target() (clientv3.KV, *member) {
	if m := s.leader.Load(); m != nil {
		return m.kv, m
	}
	return s.client.etcd, nil
}

// noReply records that a member has not answered a request. The next look, after a keepalive, may find it again.
func (s *session) noReply(m *member) {
	if m != nil {
		s.leader.CompareAndSwap(m, nil)
	}
}

// findLeader asks the last leader, and then every member, whether it is the leader. It takes less time than there is
// between two keepalives, and uses the connection to the leader, which might be dropped on the way if it were idle.
func (s *session) findLeader() {
	members := s.client.members
	if len(members) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.Context(), s.lease/lastTry)
	defer cancel()
	if m := s.leader.Load(); m != nil && s.leads(ctx, m) {
		return
	}
	s.leader.Store(nil)
	found := make(chan *member, len(members))
	for _, m := range members {
		s.Tasks.Go(func() {
			if !s.leads(ctx, m) {
				m = nil
			}
			found <- m
		})
	}
	for range members {
		if m := <-found; m != nil {
			s.leader.Store(m)
			return
		}
	}
}

// leads reports whether a member says that it is the leader, and answers a linearizable read, which a replaced leader
// cannot.
func (s *session) leads(ctx context.Context, m *member) bool {
	status, err := m.status.Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil || status.Leader != status.Header.GetMemberId() {
		return false
	}
	read, err := m.kv.Get(ctx, s.client.o.Root+"/", clientv3.WithCountOnly())
	return err == nil && read.Header.GetMemberId() == status.Leader
}
