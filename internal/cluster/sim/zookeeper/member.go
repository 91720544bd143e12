// Package zookeeper simulates a ZooKeeper ensemble (3.9) on the network of package network: fast leader election, the
// protocol between the leader and its followers (Junqueira et al. 2011, Zab; QuorumPeer, Leader, Learner), the sessions
// of clients, and the transaction log of each member. Package znode has the tree of nodes.
package zookeeper

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// member is a ZooKeeper server. While it is down only its disk remains.
type member struct {
	network.Host
	ensemble *Ensemble
	number   int // from 1; the greater one wins among equal votes
	settings settings
	disk     disk
	tree     *znode.Tree // with all committed transactions; nil: down
	read     treeRead    // for samples
	role     role
	term     int   // counts changes of the role: timers of an earlier one are ignored
	serving  bool  // clients
	round    int64 // of elections (logicalclock)
	vote     vote  // for the leader, also after the election

	election *election
	lead     *leadership
	follow   *followership
	links    []*voteLink // by number of the other member; its own is nil

	clients  []*clientConn
	watches  znode.Watches[*clientConn]
	waiting  map[int64]*queued // requests that the leader has, by token
	tokens   int64
	sessions int64 // the next session id
}

type role int

const (
	looking role = iota
	followingRole
	leadingRole
)

// settings are the keys of zoo.cfg that the simulation has, in nanoseconds where they are times.
type settings struct {
	tick                   int64
	initLimit, syncLimit   int64 // ticks
	minSession, maxSession int32 // milliseconds
	forceSync              bool
}

// settingsOf are the settings of these keys of zoo.cfg; the defaults are as package process sets them.
func settingsOf(options map[string]string) settings {
	number := func(name string, value int64) int64 {
		if v, err := strconv.ParseInt(options[name], 10, 64); err == nil {
			return v
		}
		return value
	}
	force := strings.ToLower(strings.Trim(options["forceSync"], `"'`))
	return settings{
		tick: number("tickTime", 100) * int64(time.Millisecond), initLimit: number("initLimit", 50),
		syncLimit: number("syncLimit", 10), minSession: int32(number("minSessionTimeout", 200)),
		maxSession: int32(number("maxSessionTimeout", 60_000)), forceSync: force != "no" && force != "false",
	}
}

func (m *member) majority() int { return len(m.ensemble.members)/2 + 1 }

// Start starts the server with the data on its disk.
func (m *member) Start() {
	m.tree = m.disk.load()
	m.links = make([]*voteLink, len(m.ensemble.members)+1)
	m.round, m.vote = 0, vote{}
	m.sessions = int64(m.number)<<56 | (time.Now().UnixMilli()<<24)>>8&(1<<56-1)
	m.look()
}

// Stop ends the server and drops its memory.
func (m *member) Stop() {
	m.disk.settle(m.World.Now())
	m.term++
	m.role, m.serving, m.tree = looking, false, nil
	m.election, m.lead, m.follow, m.links, m.clients, m.waiting = nil, nil, nil, nil, nil, nil
	m.watches = znode.Watches[*clientConn]{}
}

// afterInRole calls do in d nanoseconds if the member has the same role then.
func (m *member) afterInRole(d int64, do func()) {
	term := m.term
	m.After(d, func() {
		if m.term == term {
			do()
		}
	})
}

// leave ends the present role: the connections of clients, of followers and to the leader are closed. What was logged
// and not committed counts as applied from now on (fastForwardDataBase).
func (m *member) leave() {
	m.term++
	m.serving, m.waiting = false, map[int64]*queued{}
	m.watches = znode.Watches[*clientConn]{}
	for _, c := range slices.Clone(m.clients) {
		c.finish()
	}
	if m.lead != nil {
		for _, l := range m.lead.learners {
			l.conn.Die(network.Back)
		}
		m.lead = nil
	}
	if m.follow != nil {
		if m.follow.conn != nil {
			m.follow.conn.Die(network.Forward)
		}
		m.follow = nil
	}
	m.disk.replay(m.tree)
}

// Accept accepts a connection: of a client, of a follower, or for votes.
func (m *member) Accept(c *network.Conn) network.End {
	return &inbound{HostEnd: m.End(), member: m, conn: c}
}

// inbound is the server's end of a connection. Its first message decides its purpose.
type inbound struct {
	network.HostEnd
	member  *member
	conn    *network.Conn
	client  *clientConn
	learner *learner
}

func (e *inbound) Receive(s network.Segment) {
	m := e.member
	if !e.Alive() {
		return
	}
	switch msg := s.Msg.(type) {
	case nil:
		if e.client == nil {
			e.client = &clientConn{member: m, conn: e.conn}
			m.clients = append(m.clients, e.client)
		}
		e.client.Receive(s.Data)
	case notification:
		m.receiveVote(msg)
	default:
		m.fromLearner(e, msg)
	}
}

// Broken: the other end has gone.
func (e *inbound) Broken(error) {
	m := e.member
	if !e.Alive() {
		return
	}
	if e.client != nil {
		e.client.drop()
	}
	if e.learner != nil && m.lead != nil {
		m.lead.forget(e.learner)
	}
}

// committed applies a transaction that a majority has, notifies the clients that watch, and answers the requesting
// client, if it is connected here.
func (m *member) committed(x znode.Txn, from origin) {
	result, events := m.tree.Apply(x)
	for _, e := range events {
		for _, c := range m.watches.Trigger(e) {
			c.send(znode.Notification(e))
		}
	}
	if x.Op == znode.OpCloseSession && m.lead != nil {
		delete(m.lead.sessions, x.Session)
		delete(m.lead.closing, x.Session)
	}
	m.answer(from, result)
	if x.Op == znode.OpCloseSession {
		for _, c := range slices.Clone(m.clients) {
			if c.session == x.Session {
				c.finish()
			}
		}
	}
}

// answer completes a request of a client of this member.
func (m *member) answer(from origin, result znode.Result) {
	q := m.waiting[from.token]
	if from.member != m.number || from.life != m.Life || q == nil {
		return
	}
	delete(m.waiting, from.token)
	q.done, q.result = true, result
	if q.request.Op == znode.OpCreateSession {
		q.client.validated(true)
		return
	}
	q.client.advance()
}

// Disk is the disk of the member.
func (m *member) Disk() network.Disk { return &m.disk }
