package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/lockchaos/lockchaos/lock"
)

// session is one lease. It ends here when it may have ended at the servers.
type session struct {
	client *Client
	ready  chan struct{}      // closed when the lease was granted
	ctx    context.Context    // ends with the session
	stop   context.CancelFunc // of ctx

	// Written before ready is closed, and not changed:
	id    clientv3.LeaseID
	lease time.Duration

	mu    sync.Mutex
	heard time.Time     // when the last keepalive that counted was sent
	sign  chan struct{} // closed at the next keepalive that counts; nil: nobody waits for it
	term  uint64        // of the leader; 0: it is not known
	holds map[*Hold]struct{}
	why   error // it has ended; nil: it has not
}

const (
	retryEvery  = 10 * time.Millisecond // the pause after a request that was not answered
	renewals    = 3                     // keepalives in the time of a lease
	firstTry    = 16                    // the first request waits this part of the lease, the next twice that
	lastTry     = 4                     // the most that a request waits
	revokeTries = 3
)

// openSession begins a session. c.mu is held.
func (c *Client) openSession() *session {
	s := &session{client: c, ready: make(chan struct{}), holds: map[*Hold]struct{}{}, lease: c.o.Lease}
	s.ctx, s.stop = context.WithCancel(context.Background())
	c.tasks.Go(s.run)
	return s
}

// run lives as long as the session.
func (s *session) run() {
	if err := s.begin(); err != nil {
		s.end(err)
		return
	}
	s.client.tasks.Go(s.watch)
	s.keepAlive()
	s.revoke()
}

// begin requests the lease.
func (s *session) begin() error {
	var sent time.Time
	reply, err := repeat(s.ctx, s, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		sent = time.Now()
		return s.client.etcd.Grant(ctx, int64(s.client.o.Lease/time.Second))
	})
	if err != nil {
		return fmt.Errorf("request a lease: %w", err)
	}
	s.id, s.lease, s.heard = reply.ID, time.Duration(reply.TTL)*time.Second, sent
	close(s.ready)
	return nil
}

// watch ends the session at its deadline.
func (s *session) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		left := time.Until(s.deadline())
		if left <= 0 {
			s.end(lock.ErrLost)
			return
		}
		timer.Reset(left)
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// deadline is until when the lease certainly lives at the servers.
func (s *session) deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard.Add(s.lease - min(s.client.o.Margin, s.lease/2))
}

func (s *session) ended() bool { return s.ctx.Err() != nil }

// refused is why the servers have refused the lease, if that is why the session has ended.
func (s *session) refused() error {
	select {
	case <-s.ready:
		return nil
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// end ends the session and its holds because of why.
func (s *session) end(why error) {
	s.mu.Lock()
	if s.why != nil {
		s.mu.Unlock()
		return
	}
	s.why = why
	holds := s.holds
	s.holds = nil
	s.mu.Unlock()
	s.stop()
	for h := range holds { // in any order: each ends at this instant
		h.endBy(why)
	}
}

// add adds a hold; false: the session has ended.
func (s *session) add(h *Hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		s.holds[h] = struct{}{}
	}
	return s.why == nil
}

func (s *session) remove(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

// keepAlive sends keepalives until the session ends.
func (s *session) keepAlive() {
	limit := s.lease / firstTry
	for pause := time.Duration(0); ; {
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
		counted, err := s.renew(limit)
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			s.end(lock.ErrLost)
			return
		case err != nil:
			pause, limit = retryEvery, min(2*limit, s.lease/lastTry)
		case !counted: // by another leader than the last one: the next will
			pause = 0
		default:
			pause, limit = s.lease/renewals, s.lease/firstTry
		}
	}
}

// renew sends one keepalive. It counts if the leader that answered it was not replaced before a linearizable read that
// follows. Terms only grow: if the previous such read, the reply and this read have the same term, it was current all
// the time.
func (s *session) renew(limit time.Duration) (counted bool, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	sent := time.Now()
	stream, err := etcdserverpb.NewLeaseClient(s.client.etcd.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return false, err
	}
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
	read, err := s.client.etcd.Get(ctx, s.client.o.Root, clientv3.WithCountOnly())
	if err != nil {
		return false, err
	}
	return s.confirmed(sent, reply.Header.GetRaftTerm(), read.Header.RaftTerm), nil
}

// confirmed records a keepalive and the term of the linearizable read after it; false: it does not count.
func (s *session) confirmed(sent time.Time, term, now uint64) bool {
	s.mu.Lock()
	counts := s.term == now && term == now
	s.term = now
	var holds []*Hold
	if counts {
		s.heard = sent
		if s.sign != nil {
			close(s.sign)
			s.sign = nil
		}
		for h := range s.holds { // in any order: they are independent
			holds = append(holds, h)
		}
	}
	s.mu.Unlock()
	if renewed := s.client.o.OnRenewed; renewed != nil {
		for _, h := range holds {
			renewed(h)
		}
	}
	return counts
}

// awaitKeepalive waits until the last keepalive that counted is not older than half of the lease: the next was due
// after a third.
func (s *session) awaitKeepalive(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		if time.Since(s.heard) <= s.lease/2 {
			s.mu.Unlock()
			return nil
		}
		if s.sign == nil {
			s.sign = make(chan struct{})
		}
		sign := s.sign
		s.mu.Unlock()
		select {
		case <-sign:
		case <-s.ctx.Done():
			return errEnded
		case <-ctx.Done():
		}
	}
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

// errEnded says that a session ended before a request was answered.
var errEnded = errors.New("the etcd lease has ended")

// repeat calls do until it is answered, or until ctx or the session ends. What it does must be harmless to repeat.
func repeat[T any](ctx context.Context, s *session, do func(context.Context) (T, error)) (value T, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(errEnded) })()
	for limit := s.lease / firstTry; ; limit = min(2*limit, s.lease/lastTry) {
		try, done := context.WithTimeout(ctx, limit)
		value, err = do(try)
		done()
		if !unanswered(err) {
			return value, err
		}
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
