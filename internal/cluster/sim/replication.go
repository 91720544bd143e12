package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// Messages between masters and replicas, in place of the bytes of the protocol. The sizes are as of the bytes.
type (
	// syncRequest is PSYNC.
	syncRequest struct {
		addr   string
		replid string
		offset int64 // of the replica's last byte
	}
	// syncFull is FULLRESYNC and the data.
	syncFull struct {
		replid string
		offset int64
		data   *image
	}
	// syncPart is CONTINUE; the missing entries follow.
	syncPart struct{ replid string }
	// entry is a piece of the replication stream: the writes of one command, script or transaction; or, without commands,
	// a PING or a REPLCONF GETACK.
	entry struct {
		end    int64 // offset of its last byte
		size   int64
		db     int
		cmds   [][][]byte
		getack bool
	}
	// ack is REPLCONF ACK.
	ack struct{ offset int64 }
)

const (
	pingSize   = 14 // *1 $4 PING
	getackSize = 37 // *3 $8 REPLCONF $6 GETACK $1 *
	ackSize    = 43
	psyncSize  = 150 // of the whole handshake, approximately

	replCron    = int64(time.Second)
	replTimeout = int64(60 * time.Second) // repl-timeout

	// backlogSize is repl-backlog-size.
	backlogSize = 1 << 20
)

// replication is a server's replication state: as a master, as a replica, or both.
type replication struct {
	master  string // address of its master; "": it is a master
	saved   string // the same, as its configuration file has it
	replid  string
	replid2 string // its former master's, valid up to offset2
	offset  int64
	offset2 int64
	backlog []entry
	kept    int64 // bytes in backlog

	replicas []*attached
	up       *upstream // link to its master; nil: not connected
	downAt   int64     // when that link was lost
	dials    int
}

// attached is a connected replica in its master's view.
type attached struct {
	session *session
	addr    string
	offset  int64 // acknowledged
	heard   int64 // instant of the last acknowledgement
	online  bool
}

// bytes is the size of commands in the protocol.
func bytes(cmds [][][]byte) int64 {
	digits := func(n int) int64 {
		d := int64(1)
		for ; n >= 10; n /= 10 {
			d++
		}
		return d
	}
	n := int64(0)
	for _, words := range cmds {
		n += 3 + digits(len(words))
		for _, w := range words {
			n += 5 + digits(len(w)) + int64(len(w))
		}
	}
	if len(cmds) > 1 {
		n += 15 + 14 // MULTI and EXEC
	}
	return n
}

// propagate logs and replicates the changes of a command.
func (n *node) propagate(db int, cmds [][][]byte) {
	if n.repl.master != "" {
		return // a message published at a replica is not propagated
	}
	n.disk.append(record{at: n.World.Now(), db: db, cmds: withoutMessages(cmds)})
	if n.unreplicated {
		return
	}
	n.feed(entry{size: bytes(cmds), db: db, cmds: cmds})
}

// withoutMessages is cmds without PUBLISH and SPUBLISH, which are replicated but not logged.
func withoutMessages(cmds [][][]byte) [][][]byte {
	message := func(words [][]byte) bool {
		return len(words) > 0 && (strings.EqualFold(string(words[0]), "publish") ||
			strings.EqualFold(string(words[0]), "spublish"))
	}
	if !slices.ContainsFunc(cmds, message) {
		return cmds
	}
	return slices.DeleteFunc(slices.Clone(cmds), message)
}

// feed adds e to a master's replication stream.
func (n *node) feed(e entry) {
	n.repl.offset += e.size
	e.end = n.repl.offset
	n.forwardToReplicas(e)
}

// forwardToReplicas adds e to the backlog and sends it to the replicas.
func (n *node) forwardToReplicas(e entry) {
	r := &n.repl
	r.backlog = append(r.backlog, e)
	for r.kept += e.size; r.kept > backlogSize && len(r.backlog) > 1; r.backlog = r.backlog[1:] {
		r.kept -= r.backlog[0].size
	}
	for _, a := range r.replicas {
		a.session.Conn.Send(network.Back, network.Segment{Msg: e, Size: e.size})
	}
}

// replicationCron runs once a second, as in Redis.
func (n *node) replicationCron() {
	r, now := &n.repl, n.World.Now()
	if r.master != "" {
		if r.up != nil && now-r.up.heard > replTimeout {
			r.up.drop()
		}
		if r.up == nil {
			n.connectMaster()
		} else if r.up.state == linkConnected {
			r.up.acknowledge()
		}
	}
	for _, a := range slices.Clone(r.replicas) {
		if a.online && now-a.heard > replTimeout {
			n.detach(a)
			a.session.Conn.Reset()
		}
	}
	if r.master == "" && len(r.replicas) > 0 {
		n.feed(entry{size: pingSize})
	}
	n.After(replCron, n.replicationCron)
}

// fromReplica handles a message of a replica.
func (n *node) fromReplica(s *session, msg any) {
	switch m := msg.(type) {
	case syncRequest:
		n.attach(s, m)
	case ack:
		for _, a := range n.repl.replicas {
			if a.session == s {
				a.offset, a.heard, a.online = max(a.offset, m.offset), n.World.Now(), true
			}
		}
		n.endWaits()
	}
}

// attach handles PSYNC: CONTINUE if the replication ID matches and the backlog has the replica's missing part, else
// FULLRESYNC.
func (n *node) attach(s *session, m syncRequest) {
	r := &n.repl
	if r.master != "" && (r.up == nil || r.up.state != linkConnected) {
		s.Conn.Die(network.Back) // NOMASTERLINK: its own data are not in sync
		return
	}
	s.Conn.Flows[network.Back].Extra = network.Span{Max: n.cluster.config.ReplicaLag}
	a := &attached{session: s, addr: m.addr, heard: n.World.Now(), offset: m.offset}
	r.replicas = append(r.replicas, a)
	known := m.replid == r.replid || m.replid == r.replid2 && m.offset < r.offset2
	if known && m.offset <= r.offset && m.offset >= r.offset-r.kept {
		s.Conn.Send(network.Back, network.Segment{Msg: syncPart{r.replid}, Size: psyncSize})
		for _, e := range r.backlog {
			if e.end > m.offset {
				s.Conn.Send(network.Back, network.Segment{Msg: e, Size: e.size})
			}
		}
		return
	}
	data := n.snapshot()
	a.offset = 0
	s.Conn.Send(network.Back, network.Segment{Msg: syncFull{r.replid, r.offset, data}, Size: psyncSize + data.size})
}

func (n *node) detach(a *attached) {
	n.repl.replicas = slices.DeleteFunc(n.repl.replicas, func(b *attached) bool { return a == b })
}

// goodReplicas is the number of replicas within min-replicas-max-lag.
func (n *node) goodReplicas() int {
	count := 0
	for _, a := range n.repl.replicas {
		if a.online && n.World.Now()-a.heard <= n.maxLag {
			count++
		}
	}
	return count
}

// follow makes the server a replica of the one at addr, or, if that is empty, a master.
func (n *node) follow(addr string) {
	r := &n.repl
	if r.master == addr {
		return
	}
	wasReplica := r.master != ""
	r.master = addr
	if r.up != nil {
		r.up.leave()
	}
	if addr == "" {
		if wasReplica {
			r.replid2, r.offset2 = r.replid, r.offset+1
			r.replid = network.NewID(n.rng)
		}
		n.roleChanged()
		return
	}
	for _, a := range r.replicas { // they reconnect and synchronize again
		a.session.Conn.Die(network.Back)
	}
	r.replicas = nil
	r.downAt = n.World.Now()
	n.roleChanged()
	n.closeSlots()
	n.endWaits()
	n.connectMaster()
}
