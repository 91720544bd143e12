package sim

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
)

// node is a data server: an interpreter of commands with a disk, a clock and a
// part in replication. While it is down only its disk, its clock and its
// configuration file are there.
type node struct {
	host
	server       *engine.Server // nil: down
	options      map[string]string
	priority     int
	unreplicated bool // no server copies from another in this topology
	chance       *rand.Rand
	id           string // INFO's run_id, new with every start

	disk  disk
	repl  replication
	clock cluster.Clock
	set   int64 // instant at which clock was set

	maxLag      int64 // min-replicas-max-lag
	minReplicas int   // min-replicas-to-write

	dirty         []*session // with something to send
	feeding       *session   // whose commands are being carried out
	fedFrom       int64      // offset of replication when they began
	waits         []*wait
	afterCommands []func()   // to be done after the commands
	listeners     []*session // of Sentinels: subscribed to what others greet with
	wakeAt        int64      // instant of the next Wake that is planned; never: none
	harness       *harness
	bus           *bus // of a Redis Cluster; nil: the node is not in one
}

func (c *Cluster) newNode(i int) *node {
	n := &node{host: c.newHost("n"+strconv.Itoa(i+1), nodeAddr(i)), unreplicated: !replicates(c.topology)}
	n.program = n
	n.chance = c.world.stream(nameHash(n.name))
	n.options = map[string]string{"appendonly": "no", "appendfsync": "everysec", "min-replicas-to-write": "0",
		"cluster-node-timeout": "500", // as package process sets it
		"min-replicas-max-lag": "10", "replica-priority": strconv.Itoa(c.priority(i))}
	for name, value := range c.topology.Options { // order does not matter: a map is filled
		n.options[name] = value
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
	c.hosts[n.addr] = &n.host
	return n
}

// nodeAddr is an IP address, because host names would be looked up for real.
func nodeAddr(i int) string { return "10.1.0." + strconv.Itoa(i+1) + ":6379" }

// priority is different for each node, so that Sentinel's choice does not hang
// on chance (lowest first): n2, n3, …, and n1 last, as on real servers.
func (c *Cluster) priority(i int) int {
	if i == 0 {
		return 10 * (c.topology.Size() + 1)
	}
	return 10 * (i + 1)
}

// number is an option that is one; 0 if it is none.
func (n *node) number(option string) int {
	v, _ := strconv.Atoi(n.options[option])
	return v
}

// start starts the server with what its disk has kept.
func (n *node) start() {
	n.id = n.newID()
	n.server = engine.New(n.engineConfig())
	if n.disk.base != nil {
		n.load(n.disk.base)
	}
	for _, r := range n.disk.records {
		n.server.Apply(r.db, r.cmds)
	}
	n.wakeAt = never
	saved, dials := n.repl.saved, n.repl.dials
	n.repl = replication{master: saved, saved: saved, replid: n.newID(), dials: dials, downAt: n.world.now()}
	n.harness = newHarness(n)
	n.roleChanged()
	n.done()
	if n.bus != nil {
		n.join()
	}
	if n.unreplicated {
		return
	}
	if n.repl.master != "" {
		n.after(1, n.connectMaster)
	}
	n.after(replCron, n.replicationCron)
}

// stop ends the server: what it had in memory is gone.
func (n *node) stop() {
	n.disk.settle(n.world.now())
	n.server, n.dirty, n.waits, n.afterCommands, n.listeners, n.harness = nil, nil, nil, nil, nil, nil
	n.repl.up, n.repl.replicas = nil, nil
	if n.bus != nil {
		n.bus.peers = nil
	}
}

// wall is the server's own clock.
func (n *node) wall() time.Time {
	now := time.Now()
	passed := float64(n.world.now() - n.set)
	return now.Add(n.clock.Offset + time.Duration(n.clock.Drift*passed))
}

func (n *node) setClock(k cluster.Clock) {
	n.clock, n.set = k, n.world.now()
	if n.up && !n.paused {
		n.wake()
	}
}

// done is called after the server has done something: it sends what there is
// to send and sees to the server's own timers.
func (n *node) done() {
	for len(n.afterCommands) > 0 {
		do := n.afterCommands[0]
		n.afterCommands = n.afterCommands[1:]
		do()
	}
	for len(n.dirty) > 0 {
		list := n.dirty
		n.dirty = nil
		for _, s := range list {
			s.flush()
		}
	}
	n.plan()
	if n.disk.full() {
		n.disk.rewrite(n.snapshot())
	}
}

// plan sets the alarm for the server's own timers.
func (n *node) plan() {
	at, ok := n.server.NextWake()
	if !ok {
		return
	}
	left := float64(at.Sub(n.wall())) / (1 + max(n.clock.Drift, -0.99))
	instant := n.world.now() + max(int64(left), 1)
	if instant >= n.wakeAt {
		return
	}
	n.wakeAt = instant
	n.at(instant, func() {
		if n.wakeAt <= n.world.now() {
			n.wake()
		}
	})
}

// wake has the server look at its clock.
func (n *node) wake() {
	n.wakeAt = never
	n.server.Wake()
	n.done()
}

// session is the server's end of a connection.
type session struct {
	node  *node
	life  int
	conn  *conn
	peer  *engine.Conn // nil: nothing came yet
	out   []byte
	dirty bool
	ended bool  // the server has closed it
	wrote int64 // offset of replication after the last write of this connection
}

// accept takes a connection.
func (n *node) accept(c *conn) end { return &session{node: n, life: n.life, conn: c} }

func (s *session) alive() bool { return s.node.up && s.node.life == s.life }

// ready: clients wait while a manual failover of their master is under way.
func (s *session) ready() (*waiters, int64) {
	if b := s.node.bus; s.peer != nil && b != nil && b.manual.until != 0 && s.node.repl.master == "" {
		return &b.manual.writers, 0
	}
	return s.node.ready()
}

// receive carries out commands.
func (s *session) receive(seg segment) {
	if !s.alive() {
		return
	}
	n := s.node
	if seg.msg != nil {
		n.receiveMessage(s, seg.msg)
		return
	}
	if s.peer == nil {
		s.peer = n.server.Open(s.conn.source, s.push)
	}
	n.feeding, n.fedFrom = s, n.repl.offset
	s.peer.Feed(seg.data)
	n.keepOffset(s)
	n.feeding = nil
	n.done()
}

// heard is a message of another server.
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

// push keeps what the server sends until it is done.
func (s *session) push(p []byte) {
	s.ended = s.ended || p == nil
	s.out = append(s.out, p...)
	if !s.dirty {
		s.dirty = true
		s.node.dirty = append(s.node.dirty, s)
	}
}

func (s *session) flush() {
	s.dirty = false
	if len(s.out) > 0 {
		s.conn.sendAfter(back, segment{data: s.out, size: int64(len(s.out))}, max(0, s.node.busy-s.node.world.now()))
		s.out = nil
	}
	if s.ended && !s.conn.closed {
		s.conn.ends[1] = closedEnd{}
		s.conn.send(back, segment{kind: finished})
	}
}

// broken: the client is gone.
func (s *session) broken(error) {
	if !s.alive() {
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
