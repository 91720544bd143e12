package sim

import "github.com/lockchaos/lockchaos/internal/cluster"

// States of a replica's link to its master, as ROLE has them.
const (
	linkConnect    = "connect"    // disconnected; it reconnects soon
	linkConnecting = "connecting" // connecting, or PSYNC sent
	linkSync       = "sync"       // full synchronization
	linkConnected  = "connected"
)

// upstream is a replica's connection to its master. It is an end of that connection.
type upstream struct {
	hostEnd
	node  *node
	conn  *conn
	state string
	heard int64 // instant
}

// connectMaster connects to the master.
func (n *node) connectMaster() {
	r := &n.repl
	h := n.world.addresses[r.master]
	if h == nil {
		return // an address without a host
	}
	u := &upstream{hostEnd: n.end(), node: n, state: linkConnecting, heard: n.world.now()}
	r.up = u
	r.dials++
	u.conn = n.connect(h, u, r.dials)
}

func (u *upstream) current() bool { return u.alive() && u.node.repl.up == u }

func (u *upstream) receive(s segment) {
	if !u.current() {
		return
	}
	n, r := u.node, &u.node.repl
	u.heard = n.world.now()
	if s.kind == accepted {
		u.conn.send(forward, segment{msg: syncRequest{n.addr, r.replid, r.offset}, size: psyncSize})
		return
	}
	switch m := s.msg.(type) {
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
			a.session.conn.die(back)
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
		n.disk.append(record{at: n.world.now(), db: e.db, cmds: withoutMessages(e.cmds)})
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
	u.conn.send(forward, segment{msg: ack{u.node.repl.offset}, size: ackSize})
}

// broken: the link is lost. A link that was up is retried immediately (Redis since 6.2), any other by
// replicationCron.
func (u *upstream) broken(error) {
	if !u.current() {
		return
	}
	n, r := u.node, &u.node.repl
	was := u.state
	r.up = nil
	if was == linkConnected {
		r.downAt = n.world.now()
		n.connectMaster()
	}
}

// drop closes the connection after repl-timeout.
func (u *upstream) drop() {
	u.conn.die(forward)
	u.broken(nil)
}

// leave closes the connection when the master has changed.
func (u *upstream) leave() {
	if u.state == linkConnected {
		u.node.repl.downAt = u.node.world.now()
	}
	u.node.repl.up = nil
	u.conn.die(forward)
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
