package sim

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// busWire is a node's connection to another one's bus. It is an end of that connection.
type busWire struct {
	network.HostEnd
	node  *node
	peer  *peer
	conn  *network.Conn
	up    bool
	since int64
}

func (n *node) dialPeer(p *peer) {
	h := &p.node.Host
	w := &busWire{HostEnd: n.End(), node: n, peer: p, since: n.Millis()}
	p.wire = w
	n.repl.dials++
	w.conn = n.Connect(h, w, n.repl.dials)
}

func (w *busWire) send(msg any) {
	w.conn.Send(network.Forward, network.Segment{Msg: msg, Size: headerSize})
}

func (p *peer) send(msg any) {
	if p.wire != nil && p.wire.up {
		p.wire.send(msg)
	}
}

func (w *busWire) current() bool { return w.Alive() && w.peer.wire == w }

func (w *busWire) Receive(s network.Segment) {
	if !w.current() {
		return
	}
	n, p := w.node, w.peer
	if s.Kind == network.Accepted {
		w.up = true
		n.ping(p)
		return
	}
	switch m := s.Msg.(type) {
	case busPong:
		p.pongAt, p.pingAt = n.Millis(), 0
		n.alive(p)
		n.gossip(m.header)
	case mfOffset:
		n.bus.manual.target = m.offset
	}
}

func (w *busWire) Broken(error) {
	if w.current() {
		w.peer.wire = nil
	}
}

func (w *busWire) close() {
	w.conn.Die(network.Forward)
	w.Broken(nil)
	w.node.dialPeer(w.peer)
}

// alive handles a PONG of p.
func (n *node) alive(p *peer) {
	p.pfail = false
	if p.fail && (!n.votes(p.node.Index) || n.Millis()-p.failAt > n.bus.timeout*2) {
		p.fail = false
	}
	n.updateState()
}

// fromBus handles a bus message; it reports whether msg is one.
func (n *node) fromBus(s *session, msg any) bool {
	if n.bus == nil {
		return false
	}
	reply := func(msg any) { s.Conn.Send(network.Back, network.Segment{Msg: msg, Size: headerSize}) }
	switch m := msg.(type) {
	case busPing:
		n.gossip(m.header)
		reply(busPong{n.header()})
	case busPong: // sent unasked by a replica that was promoted
		n.gossip(m.header)
	case busFail:
		if p := n.peer(m.who); p != nil {
			n.failed(p)
		}
	case busUpdate:
		n.claim(m.owner, []int{m.shard}, m.config, false)
	case voteRequest:
		if n.grants(m) {
			n.bus.lastVote = m.epoch
			n.peer(m.master).votedAt = n.Millis()
			n.peer(m.from).send(voteReply{m.epoch}) // on its own connection to the replica
		}
	case voteReply:
		n.gotVote(m.epoch)
	case busMessage:
		n.deliver(m)
	case mfStart:
		n.bus.manual.until = n.Millis() + manualTimeout
		reply(mfOffset{n.repl.offset})
	default:
		return false
	}
	return true
}

// gossip processes a node's header and gossip section (clusterProcessPacket, clusterProcessGossipSection).
func (n *node) gossip(h header) {
	b := n.bus
	b.epoch = max(b.epoch, h.epoch)
	p := n.peer(h.from)
	p.master, p.offset = h.master, h.offset
	if h.master < 0 {
		p.config = h.config
		n.claim(h.from, h.shards, h.config, true)
		n.learnMoves(h.moves)
	}
	if !n.votes(h.from) {
		return
	}
	for _, q := range b.peers {
		says := slices.Contains(h.pfail, q.node.Index) || slices.Contains(h.fail, q.node.Index)
		switch {
		case says:
			q.reports[h.from] = n.Millis()
			n.countReports(q)
		default:
			delete(q.reports, h.from)
		}
	}
}

// claim processes a claim that owner has shards since a configEpoch. The highest epoch wins; a stale claim gets an
// UPDATE back (clusterUpdateSlotsConfigWith).
func (n *node) claim(owner int, shards []int, config int64, sendUpdate bool) {
	b, me := n.bus, n.Index
	if owner == me {
		return
	}
	for _, s := range shards {
		was := b.owner[s]
		switch {
		case was == owner:
			b.ownerAt[s] = max(b.ownerAt[s], config)
			continue
		case b.ownerAt[s] >= config:
			if p := n.peer(owner); sendUpdate && p != nil {
				p.send(busUpdate{shard: s, owner: was, config: b.ownerAt[s]})
			}
			continue
		}
		b.owner[s], b.ownerAt[s] = owner, config
		if was == me || was == n.masterIndex() && was >= 0 {
			n.endSubscriptions(func(slot int) bool { return n.slotOwner(slot) == owner })
		}
		if was == me && len(n.owned()) == 0 || was == n.masterIndex() && was >= 0 {
			n.follow(n.cluster.nodes[owner].Addr)
			n.repl.saved = n.repl.master
			n.endManual()
			n.done()
		}
	}
	n.updateState()
}

// grants reports whether this node votes for a replica (clusterSendFailoverAuthIfNeeded).
func (n *node) grants(m voteRequest) bool {
	b := n.bus
	b.epoch = max(b.epoch, m.epoch)
	master := n.peer(m.master)
	if n.masterIndex() >= 0 || len(n.owned()) == 0 || m.epoch < b.epoch || b.lastVote >= b.epoch || master == nil {
		return false
	}
	if !master.fail && !m.force || master.votedAt != 0 && n.Millis()-master.votedAt < n.bus.timeout*2 {
		return false
	}
	return b.ownerAt[m.shard] <= m.was
}

// electionCron schedules and runs the election of a replica whose master has failed (clusterHandleSlaveFailover).
func (n *node) electionCron() {
	b, e, now := n.bus, &n.bus.election, n.Millis()
	m := n.peer(n.masterIndex())
	manual := b.manual.until != 0 && b.manual.target >= 0 && n.repl.offset >= b.manual.target
	if m == nil || !n.votes(m.node.Index) || !m.fail && !manual {
		return
	}
	limit := max(n.bus.timeout*2, 2000)
	switch {
	case e.at == 0 || now-e.at > limit*2:
		*e = election{at: now + electionWait + n.rng.Int64N(electionWait) + rankWait*n.rank(m)}
		if manual {
			e.at, e.force = now, true
		}
		for _, p := range b.peers { // the other replicas learn this one's offset
			if p.master == m.node.Index {
				p.send(busPong{n.header()})
			}
		}
	case !e.asked && manual && !e.force:
		e.at, e.force = now, true
	}
	if now < e.at || e.asked || now-e.at > limit {
		return
	}
	b.epoch++
	e.asked, e.epoch = true, b.epoch
	shard := n.shardOfMaster(m.node.Index)
	h := n.header()
	for _, p := range b.peers {
		p.send(voteRequest{header: h, shard: shard, was: b.ownerAt[shard], force: e.force})
	}
}

// rank is how many other replicas of the master have more data.
func (n *node) rank(m *peer) int64 {
	count := int64(0)
	for _, p := range n.bus.peers {
		if p.master == m.node.Index && p.offset > n.repl.offset {
			count++
		}
	}
	return count
}

func (n *node) shardOfMaster(index int) int {
	for s, owner := range n.bus.owner {
		if owner == index {
			return s
		}
	}
	return 0
}

func (n *node) gotVote(epoch int64) {
	e := &n.bus.election
	if !e.asked || epoch != e.epoch || n.masterIndex() < 0 {
		return
	}
	if e.votes++; e.votes >= n.quorum() {
		n.takeOver(e.epoch)
	}
}

// takeOver makes the replica the owner of its master's shards (clusterFailoverReplaceYourMaster).
func (n *node) takeOver(epoch int64) {
	b, old := n.bus, n.masterIndex()
	b.config = epoch
	for s, owner := range b.owner {
		if owner == old {
			b.owner[s], b.ownerAt[s] = n.Index, epoch
		}
	}
	n.inheritMoves(old, epoch)
	n.follow("")
	n.repl.saved = ""
	b.election = election{}
	n.endManual()
	n.updateState()
	for _, p := range b.peers {
		p.send(busPong{n.header()})
	}
	n.done()
}

// manualCron ends a manual failover that timed out.
func (n *node) manualCron() {
	if m := &n.bus.manual; m.until != 0 && n.Millis() > m.until {
		n.endManual()
	}
}

// endManual ends a manual failover and resumes the paused clients of the former master.
func (n *node) endManual() {
	m := &n.bus.manual
	m.until, m.target = 0, -1
	m.writers.Release()
}

// manualFailover is CLUSTER FAILOVER at a replica; it returns the error reply.
func (n *node) manualFailover(how string) string {
	m := n.peer(n.masterIndex())
	switch {
	case m == nil:
		return "ERR You should send CLUSTER FAILOVER to a replica"
	case how == "" && (m.fail || m.wire == nil || !m.wire.up):
		return "ERR Master is down or failed, please use CLUSTER FAILOVER FORCE"
	}
	mf := &n.bus.manual
	mf.until, mf.target = n.Millis()+manualTimeout, -1
	n.bus.election = election{}
	switch how {
	case "TAKEOVER":
		n.bus.epoch++
		epoch := n.bus.epoch
		n.afterCommands = append(n.afterCommands, func() { n.takeOver(epoch) })
	case "FORCE":
		mf.target = 0 // the timer does the rest
	default:
		m.send(mfStart{n.Index})
		n.pollManualFailover()
	}
	return ""
}

// pollManualFailover checks every millisecond whether a manual failover may continue.
func (n *node) pollManualFailover() {
	if n.bus.manual.until != 0 && n.masterIndex() >= 0 {
		n.electionCron()
		n.After(int64(time.Millisecond), n.pollManualFailover)
	}
}
