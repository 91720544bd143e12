package sim

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/requests"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// node is a data server: an engine with a disk, a clock and a role in replication. While it is down only its disk,
// its clock and its configuration file remain.
type node struct {
	network.Host
	cluster      *Cluster
	server       *engine.Server // nil: down
	options      map[string]string
	priority     int
	unreplicated bool // this topology has no replicas
	rng          *rand.Rand
	id           string // INFO's run_id, new with every start

	disk disk
	repl replication

	maxLag      int64 // min-replicas-max-lag
	minReplicas int   // min-replicas-to-write

	dirty         []*session // with output to send
	feeding       *session   // whose commands are being executed
	fedFrom       int64      // replication offset when they began
	waits         []*wait
	afterCommands []func()   // to call after the commands
	listeners     []*session // Sentinels subscribed to __sentinel__:hello
	wakeAt        int64      // instant of the next Wake that is planned; never: none
	harness       *harness
	bus           *bus // of a Redis Cluster; nil: the node is not in one
}

func (c *Cluster) newNode(i int) *node {
	n := &node{cluster: c, unreplicated: !replicates(c.topology)}
	n.Init(c.world, "n"+strconv.Itoa(i+1), nodeAddr(i), n)
	n.rng = c.world.Stream(network.NameHash(n.Name))
	n.options = map[string]string{"appendonly": "no", "appendfsync": "everysec", "min-replicas-to-write": "0",
		"cluster-node-timeout": "500", // as package process sets it
		"min-replicas-max-lag": "10", "replica-priority": strconv.Itoa(c.topology.Priority(i + 1))}
	for name, value := range c.topology.Options { // order does not matter: it fills a map
		n.options[strings.ToLower(name)] = strings.ToLower(strings.Trim(value, `"'`))
	}
	n.disk = disk{on: n.options["appendonly"] == "yes", policy: n.options["appendfsync"]}
	n.priority = n.number("replica-priority")
	n.minReplicas = n.number("min-replicas-to-write")
	n.maxLag = int64(n.number("min-replicas-max-lag")) * int64(time.Second)
	if head := c.topology.MasterOf(i + 1); head > 0 {
		n.repl.saved = nodeAddr(head - 1)
	}
	if c.sharded() {
		n.bus = n.newBus()
	}
	c.nodes = append(c.nodes, n)
	return n
}

// nodeAddr is an IP address: a host name would cause a DNS query.
func nodeAddr(i int) string { return "10.1.0." + strconv.Itoa(i+1) + ":6379" }

// number is the value of a numeric option; 0 if it is not a number.
func (n *node) number(option string) int {
	v, _ := strconv.Atoi(n.options[option])
	return v
}

// Start starts the server with the data on its disk.
func (n *node) Start() {
	n.id = network.NewID(n.rng)
	n.server = engine.New(n.engineConfig())
	if n.disk.base != nil {
		n.load(n.disk.base)
	}
	for _, r := range n.disk.records {
		n.server.Apply(r.db, r.cmds)
	}
	n.wakeAt = network.Never
	saved, dials := n.repl.saved, n.repl.dials
	n.repl = replication{master: saved, saved: saved, replid: network.NewID(n.rng), dials: dials, downAt: n.World.Now()}
	n.harness = newHarness(n)
	n.roleChanged()
	n.read()
	n.done()
	if n.bus != nil {
		n.join()
	}
	if n.unreplicated {
		return
	}
	if n.repl.master != "" {
		n.After(1, n.connectMaster)
	}
	n.After(replCron, n.replicationCron)
}

// longestLoad is how long a server takes at most to read its data.
const longestLoad = 300 * time.Millisecond

// read makes a server that was started with data reply LOADING for some time. For servers with replicas or of a
// cluster, this is not simulated.
func (n *node) read() {
	if !n.unreplicated || n.bus != nil || n.disk.base == nil && len(n.disk.records) == 0 {
		return
	}
	n.server.SetLoading(true)
	n.After(n.rng.Int64N(int64(longestLoad)), func() { n.server.SetLoading(false) })
}

// Stop ends the server and drops its memory.
func (n *node) Stop() {
	n.disk.settle(n.World.Now())
	n.disk.forget()
	n.server, n.dirty, n.waits, n.afterCommands, n.listeners, n.harness = nil, nil, nil, nil, nil, nil
	n.repl.up, n.repl.replicas = nil, nil
}

// SetClock sets the clock, by which keys expire.
func (n *node) SetClock(k cluster.Clock) {
	n.Host.SetClock(k)
	if n.Up && !n.Stopped() {
		n.wake()
	}
}

// done is called after the server has executed something: it flushes output and sets the server's timer.
func (n *node) done() {
	for len(n.afterCommands) > 0 {
		do := n.afterCommands[0]
		n.afterCommands = n.afterCommands[1:]
		do()
	}
	n.flushDisk() // before the replies, as in Redis
	for len(n.dirty) > 0 && !n.Blocked {
		list := n.dirty
		n.dirty = nil
		for _, s := range list {
			s.Flush(max(0, n.Busy-n.World.Now()))
		}
	}
	n.plan()
	if n.disk.full() && !n.Blocked {
		n.disk.rewrite(n.snapshot())
	}
}

// plan schedules the engine's next wake-up.
func (n *node) plan() {
	at, ok := n.server.NextWake()
	if !ok {
		return
	}
	left := float64(at.Sub(n.Wall())) / (1 + max(n.Clock.Drift, -0.99))
	instant := n.World.Now() + max(int64(left), 1)
	if instant >= n.wakeAt {
		return
	}
	n.wakeAt = instant
	n.At(instant, func() {
		if n.wakeAt <= n.World.Now() {
			n.wake()
		}
	})
}

// wake runs the engine's timers.
func (n *node) wake() {
	n.wakeAt = network.Never
	n.server.Wake()
	n.done()
}

// session is the server's end of a connection.
type session struct {
	network.Output
	network.HostEnd
	node  *node
	peer  *engine.Conn // nil: no command received yet
	wrote int64        // replication offset after its last write
}

// Accept accepts a connection.
func (n *node) Accept(c *network.Conn) network.End {
	return &session{Output: network.Output{Conn: c}, HostEnd: n.End(), node: n}
}

// Ready: clients are paused during a manual failover of their master.
func (s *session) Ready() (*network.Waiters, int64) {
	if b := s.node.bus; s.peer != nil && b != nil && b.manual.until != 0 && s.node.repl.master == "" {
		return &b.manual.writers, 0
	}
	return s.HostEnd.Ready()
}

// Receive carries out commands.
func (s *session) Receive(seg network.Segment) {
	if !s.Alive() {
		return
	}
	n := s.node
	if seg.Msg != nil {
		n.receiveMessage(s, seg.Msg)
		return
	}
	if s.peer == nil {
		if refusal := n.server.Refuse(); refusal != "" {
			s.push([]byte(refusal))
			s.push(nil)
			n.done()
			return
		}
		s.peer = n.server.Open(s.Conn.Source, s.push)
	}
	n.feeding, n.fedFrom = s, n.repl.offset
	s.peer.Feed(seg.Data)
	n.keepOffset(s)
	n.feeding = nil
	n.done()
}

// receiveMessage handles a message of another server.
func (n *node) receiveMessage(s *session, msg any) {
	switch m := msg.(type) {
	case syncRequest, ack:
		n.fromReplica(s, m)
	default:
		if !n.fromBus(s, m) {
			n.fromSentinel(s, m)
		}
	}
}

// push buffers the server's output until done.
func (s *session) push(p []byte) {
	if s.Add(p) {
		s.node.dirty = append(s.node.dirty, s)
	}
}

// Broken: the client has disconnected.
func (s *session) Broken(error) {
	if !s.Alive() {
		return
	}
	n := s.node
	n.listeners = slices.DeleteFunc(n.listeners, func(l *session) bool { return l == s })
	for _, a := range n.repl.replicas {
		if a.session == s {
			n.detach(a)
			break
		}
	}
	if s.peer == nil {
		return
	}
	s.peer.Close()
	n.done()
}

// Execute executes a copy, and reports whether the server did not refuse it. The gate sends it on a connection of its
// own, to which the rules of the client's connections do not apply.
func (n *node) Execute(one requests.Copy, source string) (executed bool) {
	if !n.Up || n.server.Refuse() != "" {
		return false
	}
	var replies []byte
	peer := n.server.Open(source, func(p []byte) { replies = append(replies, p...) })
	peer.Feed(one.Data)
	_, executed = one.Executed(replies)
	peer.Close()
	n.done()
	return executed
}
