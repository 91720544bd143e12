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
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// session is one ZooKeeper session. It ends here when it may have ended at the servers, and is not used again then: go-
// zookeeper would silently begin another one.
type session struct {
	*sessions.Session
	client *Client
	conn   *zk.Conn
	marks  sessions.Names // of releases

	mu         sync.Mutex
	id         int64                // 0: the servers have not created it
	claims     uint64               // made in it
	identified bool                 // the servers know the identity of Options.Auth
	again      chan struct{}        // closed and replaced at each connection
	held       map[string]*Hold     // by the paths of its nodes, from before it begins until it is released
	creations  map[string]*creation // by the path that was requested, of creations that are not answered
	watches    map[watchOf]bool     // those of go-zookeeper, which sends them again at each connection
}

// watchOf is a watch: of the data of a node, or of its children.
type watchOf struct {
	path     string
	children bool
}

// creation is the request that creates one node.
type creation struct {
	sent chan struct{} // closed when it is being sent: every later request is behind it
	zxid int64         // of its reply; 0: it has none
}

// expectCreation begins to watch for the request that creates the node path.
func (s *session) expectCreation(path string) *creation {
	c := &creation{sent: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creations[path] = c
	return c
}

// forgetCreation is the counterpart of expectCreation, and returns the zxid of the reply; 0: there was none.
func (s *session) forgetCreation(path string) (zxid int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	zxid = s.creations[path].zxid
	delete(s.creations, path)
	return zxid
}

func (s *session) creationSent(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.creations[path]; c != nil {
		close(c.sent)
	}
}

func (s *session) creationDone(path string, zxid int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.creations[path]; c != nil {
		c.zxid = zxid
	}
}

// The pause after all servers were tried in vain doubles from reconnectFirst up to reconnectAtMost: many clients must
// not keep members busy that elect a leader.
const (
	reconnectFirst  = 10 * time.Millisecond
	reconnectAtMost = 80 * time.Millisecond
)

// handshakes is how many servers that hang a client can try within its session timeout.
const handshakes = 4

// openSession begins a session.
func (c *Client) openSession(shared *sessions.Session) (*session, error) {
	s := &session{
		Session: shared, client: c, again: make(chan struct{}), held: map[string]*Hold{}, creations: map[string]*creation{},
		watches: map[watchOf]bool{},
	}
	const requestSize = 160 << 10 // go-zookeeper sends watches in requests of up to 128 KiB
	servers := &hosts{session: s}
	dial := func(network, addr string, _ time.Duration) (net.Conn, error) {
		s.pause(servers.wait())
		return s.dial(network, addr)
	}
	s.mu.Lock() // no event comes before s.conn is set
	conn, _, err := zk.Connect(c.servers, c.o.Session, zk.WithDialer(dial), zk.WithHostProvider(servers),
		zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithEventCallback(s.event), zk.WithMaxConnBufferSize(requestSize))
	if err != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	s.conn = conn
	s.mu.Unlock()
	s.Tasks.Go(func() {
		s.Watch()
		conn.Close() // at the servers too
	})
	return s, nil
}

// dial connects to one server and reads along.
func (s *session) dial(network, addr string) (net.Conn, error) {
	limit := s.client.o.Session / handshakes
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := s.client.o.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	rewatched, rewatch := context.WithCancel(s.Context())
	return &wire{
		Conn: conn, limit: limit, answered: s.Heard, began: s.began, creating: s.creationSent, created: s.creationDone,
		watched: s.watched, rewatched: rewatched, rewatch: rewatch,
		sent: map[int32][]time.Time{}, paths: map[int32]string{}, watches: map[int32]watchOf{},
	}, nil
}

// pause waits, no longer than the session lasts.
func (s *session) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-s.Done():
	}
}

// began is called when a server has answered a handshake. It reports whether go-zookeeper now sends the watches of the
// session again.
func (s *session) began(sent time.Time, id int64, timeout time.Duration) (rewatches bool) {
	s.mu.Lock()
	first := s.id == 0
	if first {
		s.id = id
		s.Created(sent, timeout)
	}
	same, rewatches := s.id == id, len(s.watches) > 0
	s.mu.Unlock()
	if !same { // it has expired, and go-zookeeper has begun another
		s.End(lock.ErrLost)
		return false
	}
	s.Heard(sent, true)
	return rewatches
}

// watched is called when go-zookeeper has a watch.
func (s *session) watched(w watchOf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[w] = true
}

// event is called at each change of the connection, and for each notification of a watch.
func (s *session) event(e zk.Event) {
	switch {
	case e.Type == zk.EventNodeDeleted, e.Type == zk.EventNodeDataChanged, e.Type == zk.EventNodeChildrenChanged:
		s.mu.Lock()
		if e.Type != zk.EventNodeChildrenChanged {
			delete(s.watches, watchOf{e.Path, false})
		}
		if e.Type != zk.EventNodeDataChanged {
			delete(s.watches, watchOf{e.Path, true})
		}
		h := s.held[e.Path] // nil for the parent of a queue
		s.mu.Unlock()
		switch {
		case h == nil:
		case e.Type == zk.EventNodeDeleted:
			h.lose()
		default: // by announce; the watch has ended
			h.watch(e.Path)
		}
	case e.Type != zk.EventSession:
	case e.State == zk.StateExpired:
		s.End(lock.ErrLost)
	case e.State == zk.StateHasSession:
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.again)
		s.again = make(chan struct{})
		switch {
		case s.client.o.Auth == nil || s.identified:
			s.Begin()
		case !s.Ended():
			s.Tasks.Go(s.identify)
		}
	}
}

// identify begins the session once the servers know the identity of the client; go-zookeeper repeats it after each
// later connection. If the connection is lost before the reply, the next one tries again.
func (s *session) identify() {
	auth := s.client.o.Auth
	err := s.conn.AddAuth(auth.Scheme, auth.Credentials)
	switch {
	case err == nil:
		s.mu.Lock()
		s.identified = true
		s.mu.Unlock()
		s.Begin()
	case !interrupted(err):
		s.End(fmt.Errorf("identify with scheme %s: %w", auth.Scheme, err))
	}
}

// order is [Options.Order].
func (s *session) order(command func() string) {
	if order := s.client.o.Order; order != nil {
		order("", command)
	}
}

// reconnection is closed at the next connection. It is taken before a request, to be waited for if that fails.
func (s *session) reconnection() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again
}

// hold remembers which hold has these nodes.
func (s *session) hold(h *Hold, nodes []*node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range nodes {
		s.held[n.path()] = h
	}
}

// forget forgets the hold of these nodes.
func (s *session) forget(nodes []*node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range nodes {
		delete(s.held, n.path())
	}
}

// result is the result of a call.
type result[T any] struct {
	value T
	err   error
}

// admit is called before each request. In a simulation, requests of one instant are sent in the order of their names.
// Its error says that the session has ended: go-zookeeper may or may not send a request after the one that closes it.
func (s *session) admit(request string) error {
	s.order(func() string { return request })
	if s.Ended() {
		return sessions.ErrEnded
	}
	return nil
}

// start admits a request and calls do, which go-zookeeper may keep waiting for long, in a goroutine of its own. The
// channel has one result.
func start[T any](s *session, request string, do func() (T, error)) <-chan result[T] {
	done := make(chan result[T], 1)
	go func() {
		if err := s.admit(request); err != nil {
			done <- result[T]{err: err}
			return
		}
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
	case <-s.Done():
		return value, sessions.ErrEnded
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// read calls do until it is answered, again at each new connection. What it does must be harmless to repeat.
func read[T any](ctx context.Context, s *session, request string, do func() (T, error)) (T, error) {
	for {
		again := s.reconnection()
		value, err := await(ctx, s, start(s, request, do))
		if !interrupted(err) {
			return value, err
		}
		if err := s.awaitEvent(ctx, nil, again); err != nil {
			return value, err
		}
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

// hosts are the servers in turn. go-zookeeper notices that a session was closed only when all were tried, and calls its
// methods and dial's from one goroutine.
type hosts struct {
	session *session
	servers []string
	next    int
	tried   int // servers, since one has answered a handshake
}

func (h *hosts) Init(servers []string) error { h.servers = servers; return nil }
func (h *hosts) Len() int                    { return len(h.servers) }
func (h *hosts) Connected()                  { h.tried = 0 }

func (h *hosts) Next() (server string, retryStart bool) {
	server = h.servers[h.next%len(h.servers)]
	h.next++
	h.tried++
	return server, h.session.Ended()
}

// wait is the pause before the next connection: none while a server is left that was not tried.
func (h *hosts) wait() time.Duration {
	rounds := (h.tried - 1) / len(h.servers)
	if rounds == 0 || (h.tried-1)%len(h.servers) != 0 {
		return 0
	}
	pause := reconnectFirst
	for ; rounds > 1 && pause < reconnectAtMost; rounds-- {
		pause *= 2
	}
	return min(pause, reconnectAtMost)
}

// silent keeps go-zookeeper from logging every lost connection.
type silent struct{}

func (silent) Printf(string, ...any) {}
