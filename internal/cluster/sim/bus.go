package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// What follows, in the files bus*.go, is Redis' cluster.c (7.0): failure detection, failover auth and slot ownership.
// All nodes know each other from the start, and the slots of a master stay together, except slots in bus_slots.go.
// Times are in milliseconds of the cluster.
const (
	slots         = 16384
	busCron       = 100
	writableDelay = 2000 // how long a master waits after a restart before it serves
	maxRejoin     = 5000
	manualTimeout = 5000
	electionWait  = 500 // plus up to as much, drawn
	rankWait      = 1000
	headerSize    = 2256 // with the bitmap of slots
)

// bus is a node's part in a Redis Cluster.
type bus struct {
	timeout int64 // cluster-node-timeout in milliseconds

	// What nodes.conf keeps.
	id       string
	epoch    int64 // currentEpoch
	lastVote int64
	config   int64 // configEpoch
	owner    []int // of each shard, as index of the node
	ownerAt  []int64
	slots    resharding

	peers      []*peer // all other nodes, by index
	ok         bool    // cluster_state
	started    int64
	inMinority int64 // when it was last in a minority

	election election
	manual   manual
}

// peer is another node as this one sees it.
type peer struct {
	node   *node // its index, address and id; nothing else of it is read
	wire   *busWire
	pingAt int64 // of the PING without a PONG yet; 0: none
	pongAt int64

	pfail, fail bool
	failAt      int64
	reports     map[int]int64 // failure reports: which node, and when
	votedAt     int64         // when this node last voted for a replica of it

	master int // index of its master; -1: it is a master
	config int64
	offset int64
}

type election struct {
	at    int64 // when to request votes; 0: none is planned
	asked bool
	epoch int64
	votes int
	force bool
}

// manual is a manual failover, at the replica or at its master.
type manual struct {
	until   int64
	target  int64           // offset at which the replica has everything; -1: not known yet
	writers network.Waiters // at the master: clients paused until the failover is over
}

// Messages of the bus.
type (
	header struct {
		from, master          int
		epoch, config, offset int64
		shards                []int            // owned
		moves                 map[int]slotMove // slots of other shards, owned
		pfail, fail           []int
	}
	busPing   struct{ header }
	busPong   struct{ header }
	busFail   struct{ who int }
	busUpdate struct {
		shard, owner int
		config       int64
	}
	voteRequest struct {
		header
		shard int
		was   int64 // configEpoch of the shard as the replica knows it
		force bool
	}
	voteReply struct{ epoch int64 }
	mfStart   struct{ from int }
	mfOffset  struct{ offset int64 }
)

func (c *Cluster) sharded() bool { return c.topology.Kind == cluster.Sharded }

// newBus is the state of nodes.conf when the cluster was created.
func (n *node) newBus() *bus {
	c := n.cluster
	b := &bus{id: network.NewID(n.rng), epoch: int64(c.topology.Size()), config: int64(n.Index + 1),
		timeout: int64(n.number("cluster-node-timeout")), slots: newResharding()}
	for i := range c.topology.MasterCount() {
		b.owner = append(b.owner, i)
		b.ownerAt = append(b.ownerAt, int64(i+1))
	}
	return b
}

// join reads nodes.conf, if the node has run before, and starts the timer.
func (n *node) join() {
	b, now, known := n.bus, n.Millis(), n.bus.peers
	b.peers, b.ok, b.started, b.inMinority = nil, false, now, 0
	b.election, b.manual = election{}, manual{}
	for _, other := range n.cluster.nodes {
		if other == n {
			continue
		}
		p := &peer{node: other, pongAt: now, reports: map[int]int64{}, master: -1, config: int64(other.Index + 1)}
		if head := n.cluster.topology.MasterOf(other.Index + 1); head > 0 {
			p.master = head - 1
		}
		if i := len(b.peers); i < len(known) { // nodes.conf has it
			was := known[i]
			p.master, p.config, p.pfail, p.fail, p.failAt = was.master, was.config, was.pfail, was.fail, now
		}
		b.peers = append(b.peers, p)
	}
	first := int64(1)
	if n.Life == 1 { // real servers have not started at the same millisecond
		first += n.rng.Int64N(busCron * int64(time.Millisecond))
	}
	n.After(first, n.busTimer)
}

func (n *node) peer(index int) *peer {
	for _, p := range n.bus.peers {
		if p.node.Index == index {
			return p
		}
	}
	return nil
}

// owned is the shards that the node owns in its own view.
func (n *node) owned() []int {
	var list []int
	for shard, owner := range n.bus.owner {
		if owner == n.Index {
			list = append(list, shard)
		}
	}
	return list
}

// masterIndex is the index of the node's master; -1: it is a master.
func (n *node) masterIndex() int {
	if n.repl.master == "" {
		return -1
	}
	return n.World.Addresses[n.repl.master].Index
}

func (n *node) header() header {
	b := n.bus
	h := header{from: n.Index, master: n.masterIndex(), epoch: b.epoch, config: b.config, offset: n.repl.offset,
		shards: n.owned(), moves: n.ownMoves()}
	if m := n.peer(h.master); m != nil { // a replica sends its master's configEpoch
		h.config = m.config
	}
	for _, p := range b.peers {
		if p.pfail {
			h.pfail = append(h.pfail, p.node.Index)
		}
		if p.fail {
			h.fail = append(h.fail, p.node.Index)
		}
	}
	return h
}

// busTimer is clusterCron.
func (n *node) busTimer() {
	for _, p := range n.bus.peers {
		n.watch(p)
	}
	n.manualCron()
	n.electionCron()
	n.updateState()
	n.After(busCron*int64(time.Millisecond), n.busTimer)
}

// watch keeps the connection to p, pings it, and marks it PFAIL when it is silent.
func (n *node) watch(p *peer) {
	now := n.Millis()
	if p.wire == nil {
		n.dialPeer(p)
	}
	if p.pingAt == 0 && now-p.pongAt > n.bus.timeout/2 {
		n.ping(p)
	}
	if p.pingAt == 0 {
		return
	}
	silent := now - p.pingAt
	if p.wire.up && silent > n.bus.timeout/2 && now-p.pongAt > n.bus.timeout/2 && now-p.wire.since > n.bus.timeout {
		p.wire.close()
	}
	if silent > n.bus.timeout && !p.pfail && !p.fail {
		p.pfail = true
		n.countReports(p)
	}
}

// ping sends a PING; if the connection is not open yet, as soon as it is.
func (n *node) ping(p *peer) {
	if p.pingAt == 0 {
		p.pingAt = n.Millis()
	}
	p.send(busPing{n.header()})
}

// countReports marks p FAIL when a majority of masters reports it (markNodeAsFailingIfNeeded).
func (n *node) countReports(p *peer) {
	if !p.pfail || p.fail {
		return
	}
	count := 0
	if n.masterIndex() < 0 && len(n.owned()) > 0 {
		count = 1
	}
	for who, at := range p.reports { // a count: order does not matter
		if q := n.peer(who); q != nil && n.votes(who) && n.Millis()-at < n.bus.timeout*2 {
			count++
		}
	}
	if count < n.quorum() {
		return
	}
	n.failed(p)
	for _, other := range n.bus.peers {
		other.send(busFail{p.node.Index})
	}
}

func (n *node) failed(p *peer) {
	if !p.fail {
		p.fail, p.pfail, p.failAt = true, false, n.Millis()
		n.updateState()
	}
}

// votes reports whether a node has a vote: it is a master with slots.
func (n *node) votes(index int) bool {
	return slices.Contains(n.bus.owner, index)
}

// voters is how many nodes have a vote.
func (n *node) voters() int {
	count := 0
	for i := range n.cluster.nodes {
		if n.votes(i) {
			count++
		}
	}
	return count
}

func (n *node) quorum() int { return n.voters()/2 + 1 }

// updateState decides whether the node serves (clusterUpdateState).
func (n *node) updateState() {
	b, now := n.bus, n.Millis()
	master := n.masterIndex() < 0
	if master && !b.ok && now-b.started < writableDelay && n.Life > 1 {
		return
	}
	ok, reachable := true, 0
	for i := range n.cluster.nodes {
		p := n.peer(i)
		if !n.votes(i) {
			continue
		}
		if p != nil && p.fail {
			ok = false
		}
		if p == nil || !p.fail && !p.pfail {
			reachable++
		}
	}
	if reachable < n.quorum() {
		ok, b.inMinority = false, now
	}
	if ok && !b.ok && master && b.inMinority != 0 && now-b.inMinority < min(max(n.bus.timeout, 500), maxRejoin) {
		return
	}
	b.ok = ok
}

// keySlot is the slot of a key, or of its hash tag.
func keySlot(key []byte) int {
	for i, ch := range key {
		if ch != '{' {
			continue
		}
		for j := i + 1; j < len(key); j++ {
			if key[j] == '}' {
				if j > i+1 {
					key = key[i+1 : j]
				}
				break
			}
		}
		break
	}
	crc := uint16(0)
	for _, ch := range key { // CRC-16/XMODEM
		crc ^= uint16(ch) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}

// shardOf is the shard of a slot.
func (c *Cluster) shardOf(slot int) int {
	heads := c.topology.MasterCount()
	for s := range heads {
		if _, last := c.bounds(s); slot <= last {
			return s
		}
	}
	return heads - 1
}

func (c *Cluster) bounds(shard int) (first, last int) {
	heads := c.topology.MasterCount()
	return slots * shard / heads, slots*(shard+1)/heads - 1
}

// routed returns the redirection or error of a command with keys that this node does not serve, "" if it does. Shard
// channels are served by replicas too, wherever the keys of the slot are, and while the cluster is down
// (cluster-allow-pubsubshard-when-down).
func (n *node) routed(keys [][]byte, asking, channels bool) string {
	if len(keys) == 0 {
		return ""
	}
	slot := keySlot(keys[0])
	for _, key := range keys[1:] {
		if keySlot(key) != slot {
			return "CROSSSLOT Keys in request don't hash to the same slot"
		}
	}
	owner := n.slotOwner(slot)
	if !channels {
		if !n.bus.ok {
			return "CLUSTERDOWN The cluster is down"
		}
		if served, redirection := n.openSlot(slot, keys, asking); served || redirection != "" {
			return redirection
		}
	}
	if owner == n.Index || channels && owner == n.masterIndex() {
		return ""
	}
	return "MOVED " + strconv.Itoa(slot) + " " + n.cluster.nodes[owner].Addr
}
