// Package etcdreader reads the locks of one etcd member for the harness, past the member's gate. It is no lock and no
// client under test.
//
// Read [Reader] first.
package etcdreader

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/topology"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Reader is the harness's own connection to one etcd member, past the gate. It reads the member's own data, even
// without a majority. It may be used concurrently.
type Reader struct {
	conn *grpc.ClientConn
	err  error // of its creation
}

// commandWait bounds one exchange if the context has no earlier deadline.
const commandWait = time.Second

// Pauses between attempts to connect, which gRPC makes longer.
const (
	etcdRedialMin = 5 * time.Millisecond
	etcdRedialMax = 100 * time.Millisecond
)

// New returns a reader of the member at addr, which connects when it is first used. The caller closes it.
func New(addr string) *Reader {
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: etcdRedialMin, Multiplier: 2, MaxDelay: etcdRedialMax},
			MinConnectTimeout: commandWait,
		}))
	return &Reader{conn, err}
}

// Close ends the connection.
func (r *Reader) Close() {
	if r.conn != nil {
		_ = r.conn.Close()
	}
}

// prefixEnd ends the range of the keys that begin with prefix, whose last byte is a slash.
func prefixEnd(prefix string) []byte { return []byte(strings.TrimSuffix(prefix, "/") + "0") }

// queuePrefix begins the keys of a lock.
func queuePrefix(key string) string { return topology.EtcdRoot + "/" + key + "/" }

// readQueue is a request for the keys of a lock, oldest first. Local: as the member has them now.
func readQueue(key string, local bool) *etcdserverpb.RequestOp {
	prefix := queuePrefix(key)
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestRange{RequestRange: &etcdserverpb.RangeRequest{
		Key: []byte(prefix), RangeEnd: prefixEnd(prefix), Serializable: local,
		SortTarget: etcdserverpb.RangeRequest_CREATE, SortOrder: etcdserverpb.RangeRequest_ASCEND,
	}}}
}

// queueNames are the keys of a lock without their common prefix: the keys of package lock/etcd have one more slash.
func queueNames(lock string, kvs []*mvccpb.KeyValue) []string {
	return format.Texts(kvs, func(kv *mvccpb.KeyValue) string {
		return strings.TrimLeft(strings.TrimPrefix(string(kv.Key), queuePrefix(lock)), "/")
	})
}

// queueState is the state of a lock that has these keys, oldest first.
func queueState(key string, kvs []*mvccpb.KeyValue) history.KeyState {
	state, holders := cluster.OrderedQueueState(queueNames(key, kvs))
	for i := range holders { // the first ones
		state = cluster.AddHolder(state, string(kvs[i].Value), kvs[i].CreateRevision, kvs[i].Lease)
	}
	return state
}

// Sample is the role of the member, and the holders of each lock. Locks without keys are left out. Of the leader they
// are with every write that was answered before, which it may execute after a follower, and only if it has a majority.
// The error says why the member does not serve clients.
func (r *Reader) Sample(ctx context.Context, keys []string) (s history.Sample, err error) {
	if r.err != nil {
		return s, r.err
	}
	status, err := etcdserverpb.NewMaintenanceClient(r.conn).Status(ctx, &etcdserverpb.StatusRequest{})
	switch {
	case err != nil:
		return s, err
	case status.Leader == 0:
		return s, errors.New("it knows no leader")
	case status.IsLearner:
		return s, errors.New("it is not a voting member")
	}
	s = history.Sample{Up: true, Role: "slave", Offset: status.Header.Revision, Term: status.RaftTerm}
	if status.Leader == status.Header.MemberId {
		s.Role = "master"
	}
	if len(keys) == 0 {
		return s, nil
	}
	request := &etcdserverpb.TxnRequest{}
	for _, key := range keys {
		request.Success = append(request.Success, readQueue(key, s.Role != "master"))
	}
	reply, err := etcdserverpb.NewKVClient(r.conn).Txn(ctx, request)
	if err != nil {
		return history.Sample{}, err
	}
	s.Offset = reply.Header.Revision
	for i, part := range reply.Responses {
		if kvs := part.GetResponseRange().GetKvs(); len(kvs) > 0 {
			if s.Keys == nil {
				s.Keys = make(map[string]history.KeyState)
			}
			s.Keys[keys[i]] = queueState(keys[i], kvs)
		}
	}
	return s, nil
}

// Keys are all keys of locks, without the root, with every write that was answered before: a follower may be some
// milliseconds behind, and would show recently removed keys as left behind.
func (r *Reader) Keys(ctx context.Context) (map[string]time.Duration, error) {
	if r.err != nil {
		return nil, r.err
	}
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	const root = topology.EtcdRoot + "/"
	reply, err := etcdserverpb.NewKVClient(r.conn).Range(ctx, &etcdserverpb.RangeRequest{
		Key: []byte(root), RangeEnd: prefixEnd(root), KeysOnly: true,
	})
	if err != nil {
		return nil, err
	}
	found := make(map[string]time.Duration, len(reply.Kvs))
	for _, kv := range reply.Kvs {
		if name := strings.TrimPrefix(string(kv.Key), root); !strings.HasPrefix(name, ".") { // no mark of package lock/etcd
			found[name] = -1
		}
	}
	return found, nil
}

// DeleteHeld deletes the keys of the holders of a lock, and returns how many there were.
func (r *Reader) DeleteHeld(ctx context.Context, lock string) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	kv := etcdserverpb.NewKVClient(r.conn)
	found, err := kv.Range(ctx, readQueue(lock, false).GetRequestRange())
	if err != nil {
		return 0, err
	}
	_, holders := cluster.OrderedQueueState(queueNames(lock, found.Kvs))
	deleted := 0
	for i := range holders { // the first ones
		reply, err := kv.DeleteRange(ctx, &etcdserverpb.DeleteRangeRequest{Key: found.Kvs[i].Key})
		if err != nil {
			return deleted, err
		}
		deleted += int(reply.Deleted)
	}
	return deleted, nil
}

// SetWritable raises or ends the alarm that the database is full: then the members refuse puts.
func (r *Reader) SetWritable(ctx context.Context, _ string, writable bool) (changed bool, err error) {
	if r.err != nil {
		return false, r.err
	}
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	maintenance := etcdserverpb.NewMaintenanceClient(r.conn)
	status, err := maintenance.Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return false, err
	}
	action := etcdserverpb.AlarmRequest_ACTIVATE
	if writable {
		action = etcdserverpb.AlarmRequest_DEACTIVATE
	}
	_, err = maintenance.Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: action, MemberID: status.Header.MemberId, Alarm: etcdserverpb.AlarmType_NOSPACE,
	})
	return err == nil, err
}

// Replace removes the member at that address from the cluster, if it is there, and adds one.
func (r *Reader) Replace(ctx context.Context, peerURL string) error {
	if r.err != nil {
		return r.err
	}
	members := etcdserverpb.NewClusterClient(r.conn)
	list, err := members.MemberList(ctx, &etcdserverpb.MemberListRequest{})
	if err != nil {
		return err
	}
	for _, m := range list.Members {
		if slices.Contains(m.PeerURLs, peerURL) {
			if _, err := members.MemberRemove(ctx, &etcdserverpb.MemberRemoveRequest{ID: m.ID}); err != nil {
				return err
			}
		}
	}
	_, err = members.MemberAdd(ctx, &etcdserverpb.MemberAddRequest{PeerURLs: []string{peerURL}})
	return err
}
