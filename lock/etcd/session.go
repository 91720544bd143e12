package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// session is one lease. It ends here when it may have ended at the servers.
type session struct {
	*sessions.Session
	client *Client

	// Written before the session begins, and not changed:
	id    clientv3.LeaseID
	lease time.Duration

	term   uint64  // of the leader, for keepAlive; 0: it is not known
	stream *stream // of keepAlive; nil: there is none

	leader   atomic.Pointer[member]
	marks    sessions.Names // keys that releases write
	ids      sessions.Names // of claims
	patience atomic.Int64   // how long a request waits for a reply, in nanoseconds; 0: no longer than the first tries
}

const (
	retryEvery  = 10 * time.Millisecond // the pause after a request that was not answered
	renewals    = 3                     // keepalives in the time of a lease
	firstTry    = 32                    // the first request waits this part of the lease
	lastTry     = 4                     // the most that a request waits
	revokeTries = 3
)

// openSession begins a session.
func (c *Client) openSession(shared *sessions.Session) (*session, error) {
	s := &session{Session: shared, client: c, lease: c.o.Lease}
	s.Tasks.Go(s.run)
	return s, nil
}

// run begins the session, renews it, and returns after it has ended.
func (s *session) run() {
	if err := s.begin(); err != nil {
		s.End(err)
		return
	}
	s.Tasks.Go(s.Watch)
	s.Tasks.Go(s.findLeader)
	s.keepAlive()
	s.revoke()
}

// begin requests the lease.
func (s *session) begin() error {
	var sent time.Time
	reply, err := repeat(s.Context(), s, func(ctx context.Context, _ clientv3.KV) (*clientv3.LeaseGrantResponse, error) {
		sent = time.Now()
		return s.client.etcd.Grant(ctx, int64(s.client.o.Lease/time.Second))
	})
	if err != nil {
		return fmt.Errorf("request a lease: %w", err)
	}
	s.id, s.lease = reply.ID, time.Duration(reply.TTL)*time.Second
	s.Created(sent, s.lease)
	s.Begin()
	return nil
}

// keepAlive sends keepalives until the session ends.
func (s *session) keepAlive() {
	limit, again := s.first(), false
	for pause := time.Duration(0); ; {
		select {
		case <-time.After(pause):
		case <-s.Done():
			return
		}
		counted, err := s.renew(limit)
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			s.End(lock.ErrLost)
			return
		case err != nil:
			pause, limit, again = retryEvery, s.longer(limit), true
		case !counted: // by another leader than the last one: the next will
			pause = 0
		default:
			s.answered(limit, again)
			s.Tasks.Go(s.findLeader)
			pause, limit, again = s.lease/renewals, s.first(), false
		}
	}
}

// longer is how long the next request waits for a reply after a request waited for limit in vain. The first few are
// close together: a request that a dead leader did not replicate has no reply, and another should be sent soon after
// the election.
func (s *session) longer(limit time.Duration) time.Duration {
	if limit < s.lease/(firstTry/2) {
		return limit + limit/3
	}
	return min(2*limit, s.lease/lastTry)
}

// first is how long the first request waits for a reply. Servers that were slow get more time, which shrinks again with
// each request that is answered at once.
func (s *session) first() time.Duration {
	return max(s.lease/firstTry, time.Duration(s.patience.Load()))
}

// answered records how long the request waited at most that was answered; again: earlier ones were not.
func (s *session) answered(limit time.Duration, again bool) {
	if !again {
		limit -= limit / 4
	}
	s.patience.Store(int64(limit))
}

// stream carries the keepalives of a session: a stream for each would be authenticated each time.
type stream struct {
	etcdserverpb.Lease_LeaseKeepAliveClient
	end    context.CancelFunc
	inTime func() bool // false: ctx of the request has ended, and the stream with it
}

// keepalives is the stream of the session, which ends with ctx unless inTime is called before.
func (s *session) keepalives(ctx context.Context) (*stream, error) {
	if s.stream != nil {
		s.stream.inTime = context.AfterFunc(ctx, s.stream.end)
		return s.stream, nil
	}
	whole, end := context.WithCancel(s.Context())
	inTime := context.AfterFunc(ctx, end)
	client, err := etcdserverpb.NewLeaseClient(s.client.etcd.ActiveConnection()).LeaseKeepAlive(whole)
	if err != nil {
		end()
		return nil, err
	}
	s.stream = &stream{client, end, inTime}
	return s.stream, nil
}

// renew sends one keepalive. It counts if the leader that answered it was not replaced before a linearizable read that
// follows. Terms only grow: if the previous such read, the reply and this read have the same term, it was current all
// the time.
func (s *session) renew(limit time.Duration) (counted bool, err error) {
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	stream, err := s.keepalives(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if !stream.inTime() || err != nil || !counted { // a later reply could be taken for one to the next request
			stream.end()
			s.stream = nil
		}
	}()
	sent := time.Now()
	if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(s.id)}); err != nil {
		return false, err
	}
	reply, err := stream.Recv()
	switch {
	case err != nil:
		return false, err
	case reply.TTL <= 0:
		return false, rpctypes.ErrLeaseNotFound
	}
	read, err := s.client.etcd.Get(ctx, s.client.o.Root+"/", clientv3.WithCountOnly())
	if err != nil {
		return false, err
	}
	return s.confirmed(sent, reply.Header.GetRaftTerm(), read.Header.RaftTerm), nil
}

// revoked reports whether the servers no longer have the lease. It is false if they do not answer soon.
func (s *session) revoked() bool {
	ctx, cancel := context.WithTimeout(s.Context(), s.lease/firstTry)
	defer cancel()
	left, err := s.client.etcd.TimeToLive(ctx, s.id)
	return errors.Is(err, rpctypes.ErrLeaseNotFound) || err == nil && left.TTL < 0
}

// confirmed records a keepalive and the term of the linearizable read after it; false: it does not count.
func (s *session) confirmed(sent time.Time, term, now uint64) bool {
	counts := s.term == now && term == now
	s.term = now
	if counts {
		s.Heard(sent, true)
	}
	return counts
}

// revoke ends the lease at the servers, so that others need not wait for its end.
func (s *session) revoke() {
	for range revokeTries {
		ctx, cancel := context.WithTimeout(context.Background(), s.lease/lastTry)
		_, err := s.client.etcd.Revoke(ctx, s.id)
		cancel()
		if !unanswered(err) {
			return
		}
		time.Sleep(retryEvery)
	}
}

// repeat calls do until it is answered, or until ctx or the session ends. What it does must be harmless to repeat. The
// first request goes to the leader if that is known.
func repeat[T any](
	ctx context.Context, s *session, do func(context.Context, clientv3.KV) (T, error),
) (value T, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.Context(), func() { cancel(sessions.ErrEnded) })()
	limit := s.first()
	kv, leader := s.target()
	for again := false; ; again, limit = true, s.longer(limit) {
		try, done := context.WithTimeout(ctx, limit)
		value, err = do(try, kv)
		done()
		if !unanswered(err) {
			s.answered(limit, again)
			return value, err
		}
		if ctx.Err() == nil {
			s.noReply(leader)
		}
		kv = s.client.etcd
		select {
		case <-ctx.Done():
			return value, context.Cause(ctx)
		case <-time.After(retryEvery):
		}
	}
}

// unanswered reports whether a request failed without an answer that it was not, and will not be, executed.
func unanswered(err error) bool {
	if err == nil {
		return false
	}
	var answer rpctypes.EtcdError
	if !errors.As(err, &answer) {
		return true
	}
	switch answer.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal, codes.Aborted,
		codes.DataLoss:
		return true
	}
	return false
}
