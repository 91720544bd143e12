package sim

import (
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// States of a replica's link to its master, as ROLE has them.
const (
	linkConnect    = "connect"    // disconnected; it reconnects soon
	linkConnecting = "connecting" // connecting, or PSYNC sent
	linkSync       = "sync"       // full synchronization
	linkConnected  = "connected"
)

// upstream is a replica's connection to its master. It is an end of that connection.
type upstream struct {
	network.HostEnd
	node  *node
	conn  *network.Conn
	state string
	heard int64 // instant
}

// connectMaster connects to the master.
func (n *node) connectMaster() {
	r := &n.repl
	h := n.World.Addresses[r.master]
	if h == nil {
		return // an address without a host
	}
	u := &upstream{HostEnd: n.End(), node: n, state: linkConnecting, heard: n.World.Now()}
	r.up = u
	r.dials++
	u.conn = n.Connect(h, u, r.dials)
}

func (u *upstream) current() bool { return u.Alive() && u.node.repl.up == u }

func (u *upstream) Receive(s network.Segment) {
	if !u.current() {
		return
	}
	n, r := u.node, &u.node.repl
	u.heard = n.World.Now()
	if s.Kind == network.Accepted {
		u.conn.Send(network.Forward, network.Segment{Msg: syncRequest{n.Addr, r.replid, r.offset}, Size: psyncSize})
		return
	}
	switch m := s.Msg.(type) {
	case syncPart:
		if m.replid != r.replid {
			r.replid2, r.offset2, r.replid = r.replid, r.offset+1, m.replid
		}
		u.state = linkConnected
		u.acknowledge()
	case syncFull:
		u.state = linkSync
		n.load(m.data)
		n.disk.rewrite(m.data)
		r.replid, r.replid2, r.offset, r.offset2 = m.replid, "", m.offset, 0
		r.backlog, r.kept = nil, 0
		for _, a := range r.replicas { // their history differs now
			a.session.Conn.Die(network.Back)
		}
		r.replicas = nil
		u.state = linkConnected
		u.acknowledge()
	case entry:
		u.apply(m)
	}
}

// apply executes an entry of the replication stream.
func (u *upstream) apply(e entry) {
	n := u.node
	if e.cmds != nil {
		n.disk.append(record{at: n.World.Now(), db: e.db, cmds: withoutMessages(e.cmds)})
		n.server.Apply(e.db, e.cmds)
		n.done()
	}
	n.repl.offset = e.end
	n.forwardToReplicas(e)
	if e.getack {
		u.acknowledge()
	}
}

func (u *upstream) acknowledge() {
	u.conn.Send(network.Forward, network.Segment{Msg: ack{u.node.repl.offset}, Size: ackSize})
}

// Broken: the link is lost. A link that was up is retried immediately (Redis since 6.2), any other by
// replicationCron.
func (u *upstream) Broken(error) {
	if !u.current() {
		return
	}
	n, r := u.node, &u.node.repl
	was := u.state
	r.up = nil
	if was == linkConnected {
		r.downAt = n.World.Now()
		n.connectMaster()
	}
}

// drop closes the connection after repl-timeout.
func (u *upstream) drop() {
	u.conn.Die(network.Forward)
	u.Broken(nil)
}

// leave closes the connection when the master has changed.
func (u *upstream) leave() {
	if u.state == linkConnected {
		u.node.repl.downAt = u.node.World.Now()
	}
	u.node.repl.up = nil
	u.conn.Die(network.Forward)
}

// linkState is the state of the link to the master, as ROLE has it.
func (n *node) linkState() string {
	if n.repl.up == nil {
		return linkConnect
	}
	return n.repl.up.state
}

// replicates reports whether the topology has replicas.
func replicates(t cluster.Topology) bool { return t.Replicas > 0 }
