package sim_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/topology"
)

// ensembleServers has the methods of an ensemble that the events need, simulated or real.
type ensembleServers interface {
	cluster.Cluster
	cluster.Killer
	observable
}

type observable interface {
	cluster.Pauser
	cluster.Links
	cluster.Witness
}

// ensembleObserver polls the members of an ensemble, and records the notifications of two go-zookeeper clients. The
// leader at the start of an event is "le"; of its followers, the one with the greater number is "hi", the other "lo".
// Client "c0" is connected to the leader, "c1" to lo; both connect to hi next.
type ensembleObserver struct {
	views
	c    ensembleServers
	ctx  context.Context
	dial func(i int) dialer // of a client

	names   map[string]string // of members, by label
	skipped string            // label of a member that is paused, and is not polled
	key     string            // of the lock of this event
	epoch   int64             // when that was made
	events  int
	clients [2]*observedClient
	allowed map[string]bool // possible effects of the event: "c0 session=StateDisconnected"
}

// dialer connects a client to a server.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

const (
	observedSession = 4 * time.Second
	retryDial       = 10 * time.Millisecond
	holderPath      = "/one-lock-0000000001"
	recordedNothing = "-"

	// tooLate: if a sample fails after more than this, the member is stalled by a busy machine, and its last view is
	// kept. A member that looks for a leader closes the connection, and a killed one refuses it: both at once.
	tooLate = 500 * time.Millisecond
)

// observedClient is a go-zookeeper client whose events are recorded.
type observedClient struct {
	label   string
	servers []string
	next    int
	conn    *zk.Conn
	stop    chan struct{}
	state   zk.State // only go-zookeeper's goroutine uses it

	mu      sync.Mutex
	began   time.Time         // of the event
	changes []change          // not polled yet
	watches int               // notifications of watches
	kinds   map[string]string // of nodes, by path
	again   chan struct{}     // closed and replaced at each session event that says that it is connected
}

// The methods of zk.HostProvider: the servers in turn.

func (c *observedClient) Init([]string) error { return nil }
func (c *observedClient) Len() int            { return len(c.servers) }
func (c *observedClient) Connected()          {}

func (c *observedClient) Next() (server string, retryStart bool) {
	server = c.servers[c.next%len(c.servers)]
	c.next++
	return server, false
}

type quietZooKeeper struct{}

func (quietZooKeeper) Printf(string, ...any) {}

// report records a change.
func (c *observedClient) report(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, change{time.Since(c.began).Milliseconds(), c.label, fmt.Sprintf(format, args...)})
}

// event records a notification of go-zookeeper. How many connections lead to no session depends on how fast an election
// is, so only the first lost one counts.
func (c *observedClient) event(e zk.Event) {
	switch {
	case e.Type != zk.EventSession:
		c.mu.Lock()
		c.watches++
		n, kind := c.watches, c.kinds[e.Path]
		c.mu.Unlock()
		c.report("watch %d=%v %s", n, e.Type, kind)
	case e.State == zk.StateHasSession:
		c.mu.Lock()
		close(c.again)
		c.again = make(chan struct{})
		c.mu.Unlock()
		c.state = e.State
		c.report("session=%v", e.State)
	case e.State == zk.StateDisconnected || e.State == zk.StateExpired:
		if e.State == zk.StateExpired || c.state == zk.StateHasSession { // once, however many connections lead to no session
			c.report("session=%v", e.State)
		}
		c.state = e.State
	}
}

func (c *observedClient) reconnection() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.again
}

// open connects a client to the members of these labels, in turn.
func (o *ensembleObserver) open(i int, members ...string) (*observedClient, error) {
	c := &observedClient{label: fmt.Sprint("c", i), stop: make(chan struct{}), again: make(chan struct{}), began: time.Now()}
	addrs := o.c.Endpoints(i).Addrs
	for _, label := range members {
		at := slices.IndexFunc(o.c.Nodes(), func(n cluster.Node) bool { return n.Name == o.names[label] })
		c.servers = append(c.servers, addrs[at])
	}
	dial := o.dial(i)
	connected := c.reconnection()
	var err error
	c.conn, _, err = zk.Connect(c.servers, observedSession, zk.WithHostProvider(c), zk.WithLogger(quietZooKeeper{}),
		zk.WithLogInfo(false), zk.WithEventCallback(c.event),
		zk.WithDialer(func(network, addr string, _ time.Duration) (net.Conn, error) {
			conn, err := dial(context.Background(), network, addr)
			if err != nil {
				time.Sleep(retryDial) //nolint:forbidigo // between attempts
			}
			return conn, err
		}))
	if err != nil {
		return nil, err
	}
	select {
	case <-connected:
		return c, nil
	case <-time.After(stepTimeout):
		return nil, fmt.Errorf("%s has no session after %v", c.label, stepTimeout)
	}
}

func (o *ensembleObserver) closeClients() {
	for i, c := range o.clients {
		if c != nil {
			close(c.stop)
			c.conn.Close()
			o.clients[i] = nil
		}
	}
}

// poll reads every member, except a paused one, and takes the clients' records.
func (o *ensembleObserver) poll(r *recorded, ms int64) {
	for _, label := range slices.Sorted(maps.Keys(o.names)) {
		if label == o.skipped {
			continue
		}
		view := map[string]string{"role": "none"}
		asked := time.Now()
		s := o.c.Sample(o.ctx, o.names[label], []string{o.key})
		if !s.Up && time.Since(asked) > tooLate {
			continue
		}
		if s.Up {
			view["role"] = map[string]string{"master": "leader", "slave": "follower"}[s.Role]
			view["holder"] = recordedNothing
			if owner := s.Keys[o.key].Owner; owner != "" {
				view["holder"] = owner
			}
		} else {
			view["holder"] = o.last[label]["holder"]
		}
		o.update(r, ms, label, view, func(string) bool { return false })
	}
	for _, c := range o.clients {
		if c == nil {
			continue
		}
		c.mu.Lock()
		if r != nil {
			r.Changes = append(r.Changes, c.changes...)
		} else {
			c.began, c.watches = time.Now(), 0
		}
		c.changes = nil
		c.mu.Unlock()
	}
	if r != nil {
		slices.SortStableFunc(r.Changes, func(a, b change) int { return int(a.ms - b.ms) })
	}
}

// disturbed reports whether a client lost its connection, or a member its role, that the event does not concern.
func (o *ensembleObserver) disturbed(r *recorded) bool {
	return slices.ContainsFunc(r.Changes, func(c change) bool {
		lost := c.what == "session=StateDisconnected" || c.what == "role=none" || c.what == "session=StateExpired"
		return lost && !o.allowed[c.node+" "+c.what]
	})
}

// inRoles labels the members, once one leads and two follow.
func (o *ensembleObserver) inRoles() bool {
	o.names = map[string]string{}
	for _, n := range o.c.Nodes() { // in order of their numbers
		s := o.c.Sample(o.ctx, n.Name, nil)
		switch {
		case !s.Up:
			return false
		case s.Role == "master" && o.names["le"] == "":
			o.names["le"] = n.Name
		case s.Role == "slave" && o.names["lo"] == "":
			o.names["lo"] = n.Name
		case s.Role == "slave":
			o.names["hi"] = n.Name
		}
	}
	return len(o.names) == 3
}

// prepare waits for three members that serve, connects the clients, and creates the nodes of an event: an ephemeral
// one of c0, which holds the lock, and a flag. Client c1 watches both, and the lock.
func (o *ensembleObserver) prepare() error {
	o.closeClients()
	o.skipped = ""
	if err := until(o.inRoles); err != nil {
		return fmt.Errorf("not all members serve: %w", err)
	}
	o.views = newViews()
	var err0, err1 error
	o.clients[0], err0 = o.open(0, "le", "hi")
	o.clients[1], err1 = o.open(1, "lo", "hi")
	if err := errors.Join(err0, err1); err != nil {
		return err
	}
	o.events++
	o.key = fmt.Sprint("k", o.events)
	lock, acl := o.lockPath(), zk.WorldACL(zk.PermAll)
	c0, c1 := o.clients[0].conn, o.clients[1].conn
	o.clients[1].mu.Lock()
	o.clients[1].kinds = map[string]string{lock: "lock", lock + holderPath: "holder", o.flagPath(): "flag"}
	o.clients[1].mu.Unlock()
	for _, create := range []struct {
		path, data string
		flags      int32
	}{
		{topology.ZooKeeperRoot, "", 0}, {lock, "", 0}, {lock + holderPath, "one", zk.FlagEphemeral},
		{o.flagPath(), "old", 0},
	} {
		if _, err := c0.Create(create.path, []byte(create.data), create.flags, acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", create.path, err)
		}
	}
	_, err := c1.Sync(lock)
	_, stat, _, err1 := c1.ExistsW(lock + holderPath)
	_, _, _, err2 := c1.ChildrenW(lock)
	_, _, _, err3 := c1.GetW(o.flagPath())
	if err := errors.Join(err, err1, err2, err3); err != nil {
		return err
	}
	o.epoch = stat.Czxid >> 32
	return until(func() bool {
		for _, n := range o.c.Nodes() {
			if o.c.Sample(o.ctx, n.Name, []string{o.key}).Keys[o.key].Owner != "one" {
				return false
			}
		}
		return true
	})
}

func (o *ensembleObserver) lockPath() string { return topology.ZooKeeperRoot + "/" + o.key }

// flagPath is the path of a node which c0 writes; it is not below a lock.
func (o *ensembleObserver) flagPath() string { return "/flag-" + o.key }

// until polls until done.
func until(done func() bool) error {
	for end := time.Now().Add(stepTimeout); !done(); time.Sleep(pollEvery) { //nolint:forbidigo // polls
		if time.Now().After(end) {
			return fmt.Errorf("not after %v", stepTimeout)
		}
	}
	return nil
}

// repeat calls do in a goroutine, again at each reconnection of the client, until its request is answered.
func (c *observedClient) repeat(do func() error) {
	go func() {
		for {
			again := c.reconnection()
			if do() == nil {
				return
			}
			select {
			case <-again:
			case <-c.stop:
				return
			}
		}
	}()
}

// write has c0 write the flag, and report in which epoch, counted from the lock's.
func (o *ensembleObserver) write() {
	c, path, before := o.clients[0], o.flagPath(), o.epoch
	c.repeat(func() error {
		stat, err := c.conn.Set(path, []byte("new"), -1)
		if err == nil {
			c.report("write=accepted in epoch %+d", stat.Mzxid>>32-before)
		}
		return err
	})
}

// read has c1 read the flag at its member, and report its value.
func (o *ensembleObserver) read(word string) error {
	c, path := o.clients[1], o.flagPath()
	data, _, err := c.conn.Get(path)
	if err == nil {
		c.report("%s=%s", word, data)
	}
	return err
}
