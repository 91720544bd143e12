package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/lock"
)

// session is one ZooKeeper session. It ends here when it may have ended at the servers, and is not used again then: go-
// zookeeper would silently begin another one.
type session struct {
	client *Client
	conn   *zk.Conn
	ready  chan struct{} // closed when it has begun
	done   chan struct{} // closed when it has ended

	mu      sync.Mutex
	id      int64 // 0: it has not begun
	timeout time.Duration
	heard   time.Time     // when the last request that was answered was sent
	again   chan struct{} // closed and replaced at each connection
	holds   map[*Hold]struct{}
	why     error // it has ended; nil: it has not
}

// reconnectEvery is the pause after a failed connection attempt.
const reconnectEvery = 10 * time.Millisecond

// handshakes is how many servers that hang a client can try within its session timeout.
const handshakes = 4

// openSession begins a session. c.mu is held.
func (c *Client) openSession() (*session, error) {
	s := &session{
		client: c, ready: make(chan struct{}), done: make(chan struct{}), again: make(chan struct{}),
		holds: map[*Hold]struct{}{},
	}
	const requestSize = 64 << 10
	conn, _, err := zk.Connect(c.servers, c.o.Session, zk.WithDialer(s.dial), zk.WithHostProvider(&hosts{session: s}),
		zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithEventCallback(s.event), zk.WithMaxConnBufferSize(requestSize))
	if err != nil {
		return nil, fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	s.conn = conn
	c.tasks.Go(func() {
		s.watch()
		conn.Close() // at the servers too
	})
	return s, nil
}

// watch ends the session at its deadline.
func (s *session) watch() {
	select {
	case <-s.ready:
	case <-s.done:
		return
	}
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
		case <-s.done:
			return
		}
	}
}

// deadline is until when the session certainly lives at the servers.
func (s *session) deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard.Add(s.timeout - s.client.margin(s.timeout))
}

// margin is Options.Margin for a session whose timeout the servers have decided.
func (c *Client) margin(timeout time.Duration) time.Duration {
	return min(c.o.Margin, timeout/2)
}

func (s *session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// end ends the session and its holds because of why.
func (s *session) end(why error) {
	s.mu.Lock()
	if s.why != nil {
		s.mu.Unlock()
		return
	}
	s.why = why
	close(s.done)
	holds := s.holds
	s.holds = nil
	s.mu.Unlock()
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

// dial connects to one server and reads along. go-zookeeper calls it again at once after an error.
func (s *session) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	limit := s.client.o.Session / handshakes
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := s.client.o.Dial(ctx, network, addr)
	if err != nil {
		s.pause()
		return nil, err
	}
	return &wire{Conn: conn, limit: limit, answered: s.answered, began: s.began, sent: map[int32][]time.Time{}}, nil
}

func (s *session) pause() {
	select {
	case <-time.After(reconnectEvery):
	case <-s.done:
	}
}

// began is called when a server has answered a handshake.
func (s *session) began(sent time.Time, id int64, timeout time.Duration) {
	s.mu.Lock()
	first := s.id == 0
	if first {
		s.id, s.timeout = id, timeout
	}
	same := s.id == id
	s.mu.Unlock()
	if !same { // it has expired, and go-zookeeper has begun another
		s.end(lock.ErrLost)
		return
	}
	s.answered(sent, !first)
}

// answered is called when a request that was sent at that time was answered.
func (s *session) answered(sent time.Time, ping bool) {
	s.mu.Lock()
	later := sent.After(s.heard)
	if later {
		s.heard = sent
	}
	var holds []*Hold
	if later && ping && s.client.o.OnRenewed != nil {
		for h := range s.holds { // in any order: they are independent
			holds = append(holds, h)
		}
	}
	s.mu.Unlock()
	for _, h := range holds {
		s.client.o.OnRenewed(h)
	}
}

// event is called at each change of the connection.
func (s *session) event(e zk.Event) {
	switch {
	case e.Type != zk.EventSession:
	case e.State == zk.StateExpired:
		s.end(lock.ErrLost)
	case e.State == zk.StateHasSession:
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.again)
		s.again = make(chan struct{})
		select {
		case <-s.ready:
		default:
			close(s.ready)
		}
	}
}

// reconnection is closed at the next connection. It is taken before a request, to be waited for if that fails.
func (s *session) reconnection() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again
}

// errEnded says that a session ended before a request was answered.
var errEnded = errors.New("the ZooKeeper session has ended")

// result is what a call returned.
type result[T any] struct {
	value T
	err   error
}

// start calls do, which go-zookeeper may keep waiting for long, in a goroutine of its own. The channel has one result.
func start[T any](do func() (T, error)) <-chan result[T] {
	done := make(chan result[T], 1)
	go func() {
		value, err := do()
		done <- result[T]{value, err}
	}()
	return done
}

// await waits for a call until ctx or the session ends.
func await[T any](ctx context.Context, s *session, call <-chan result[T]) (value T, err error) {
	select {
	case r := <-call:
		return r.value, r.err
	case <-s.done:
		return value, errEnded
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// read calls do until it is answered, again at each new connection. What it does must be harmless to repeat.
func read[T any](ctx context.Context, s *session, do func() (T, error)) (T, error) {
	for {
		again := s.reconnection()
		value, err := await(ctx, s, start(do))
		if !interrupted(err) {
			return value, err
		}
		if err := s.wait(ctx, again); err != nil {
			return value, err
		}
	}
}

// wait waits for a connection.
func (s *session) wait(ctx context.Context, again <-chan struct{}) error {
	select {
	case <-again:
		return nil
	case <-s.done:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// interrupted reports whether a request failed with its connection: it may have been executed.
func interrupted(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) ||
		errors.Is(err, zk.ErrSessionMoved) || isNetwork(err)
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded)
}

// hosts are the servers in turn. go-zookeeper notices that a session was closed only when all were tried.
type hosts struct {
	session *session
	servers []string
	next    int
}

func (h *hosts) Init(servers []string) error { h.servers = servers; return nil }
func (h *hosts) Len() int                    { return len(h.servers) }
func (h *hosts) Connected()                  {}

func (h *hosts) Next() (server string, retryStart bool) {
	server = h.servers[h.next%len(h.servers)]
	h.next++
	return server, h.session.ended()
}

// silent keeps go-zookeeper from logging every lost connection.
type silent struct{}

func (silent) Printf(string, ...any) {}
