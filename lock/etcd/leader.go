package etcd

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// leader is the connection of a session to the leader of the cluster. Another member forwards a request to it, and
// replies once it has applied the request itself, which costs a hop and the wait for the leader's next message. No
// guarantee depends on it: a request without a reply is sent again on the connection of the user's client, and a member
// that is no longer the leader forwards requests. Its methods may be called concurrently.
type leader struct {
	current atomic.Pointer[member] // nil: it is not known
	finding atomic.Bool

	mu     sync.Mutex
	conns  map[string]*grpc.ClientConn // by endpoint; one that is not used any more stays: requests may wait for replies
	closed bool
}

// member is a member that was the leader in a term.
type member struct {
	kv   clientv3.KV
	term uint64
}

// requests is where the first try of a request goes: to the leader if it is known.
func (s *session) requests() (clientv3.KV, *member) {
	if m := s.leader.current.Load(); m != nil {
		return m.kv, m
	}
	return s.client.etcd, nil
}

// noReply records that a member has not answered a request, and looks for the leader again.
func (s *session) noReply(m *member) {
	if m != nil && s.leader.current.CompareAndSwap(m, nil) {
		s.lookForLeader(0)
	}
}

// lookForLeader finds the leader in the background, unless that of the term is known.
func (s *session) lookForLeader(term uint64) {
	l := &s.leader
	if m := l.current.Load(); m != nil && m.term == term || !s.client.direct || !l.finding.CompareAndSwap(false, true) {
		return
	}
	s.Tasks.Go(func() {
		defer l.finding.Store(false)
		if m := s.findLeader(); m != nil {
			l.current.Store(m)
		}
	})
}

// findLeader asks every member who the leader is. It returns the one that says it is the leader itself, and that
// answers a linearizable read on a connection of its own; nil: there is none.
func (s *session) findLeader() *member {
	ctx, cancel := context.WithTimeout(s.Context(), s.lease/lastTry)
	defer cancel()
	endpoints := s.client.etcd.Endpoints()
	found := make(chan *member, len(endpoints))
	for _, endpoint := range endpoints {
		s.Tasks.Go(func() { found <- s.asLeader(ctx, endpoint) })
	}
	for range endpoints {
		if m := <-found; m != nil {
			return m
		}
	}
	return nil
}

// asLeader is the member at the endpoint if it is the leader; nil: it is not, or does not answer.
func (s *session) asLeader(ctx context.Context, endpoint string) *member {
	status, err := s.client.etcd.Status(ctx, endpoint)
	if err != nil || status.Leader != status.Header.MemberId {
		return nil
	}
	conn := s.leader.conn(s.client.etcd, endpoint)
	if conn == nil {
		return nil
	}
	kv := clientv3.NewKVFromKVClient(etcdserverpb.NewKVClient(conn), s.client.etcd)
	if _, err := kv.Get(ctx, s.client.o.Root, clientv3.WithCountOnly()); err != nil {
		return nil
	}
	return &member{kv, status.RaftTerm}
}

// conn is a connection to an endpoint, with the settings of the user's client; nil: there can be none.
func (l *leader) conn(etcd *clientv3.Client, endpoint string) *grpc.ClientConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if conn := l.conns[endpoint]; conn != nil {
		return conn
	}
	if l.closed {
		return nil
	}
	conn, err := etcd.Dial(endpoint)
	if err != nil {
		return nil
	}
	if l.conns == nil {
		l.conns = map[string]*grpc.ClientConn{}
	}
	l.conns[endpoint] = conn
	return conn
}

// close closes the connections.
func (l *leader) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, conn := range l.conns {
		_ = conn.Close()
	}
}

// direct reports whether requests may bypass the connection of the user's client: there is more than one member, and
// KV is not replaced, as with one that adds a prefix to all keys (package namespace).
func direct(c *clientv3.Client) bool {
	return len(c.Endpoints()) > 1 && reflect.TypeOf(c.KV) == reflect.TypeOf(clientv3.NewKVFromKVClient(nil, nil))
}
