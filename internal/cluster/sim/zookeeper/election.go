package zookeeper

import (
	"cmp"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// Times of an election (FastLeaderElection), as package process sets them; settleWait is fixed in ZooKeeper.
const (
	firstResend = int64(50 * time.Millisecond)
	lastResend  = int64(200 * time.Millisecond)
	settleWait  = int64(200 * time.Millisecond)

	connectWait      = int64(500 * time.Millisecond) // cnxTimeout
	notificationSize = 100
)

// vote names a member, with the last transaction and the epoch on its disk.
type vote struct {
	leader      int
	zxid, epoch int64
}

// compare orders votes: the greater one is to be followed (totalOrderPredicate).
func (v vote) compare(o vote) int {
	return cmp.Or(cmp.Compare(v.epoch, o.epoch), cmp.Compare(v.zxid, o.zxid), cmp.Compare(v.leader, o.leader))
}

// notification is a message between members in an election.
type notification struct {
	from  int
	vote  vote
	round int64
	role  role
}

// election is a member's part in an election.
type election struct {
	votes  map[int]vote         // of this round
	others map[int]notification // of members that follow or lead
	wait   int64                // until votes are sent again
	settle int                  // counts the waits for a better vote
}

// look begins an election (lookForLeader).
func (m *member) look() {
	m.leave()
	m.role = looking
	m.round++
	m.election = &election{votes: map[int]vote{}, others: map[int]notification{}, wait: firstResend}
	m.propose(m.own())
	m.resend()
}

// own is the vote for the member itself.
func (m *member) own() vote { return vote{m.number, m.tree.Zxid(), m.disk.current} }

// propose votes for v and sends that to every other member.
func (m *member) propose(v vote) {
	m.vote = v
	m.election.votes[m.number] = v
	m.sendVotes()
}

func (m *member) sendVotes() {
	for _, other := range m.ensemble.members {
		if other != m {
			m.sendVote(other.number)
		}
	}
}

func (m *member) sendVote(to int) {
	m.link(to).send(notification{m.number, m.vote, m.round, m.role})
}

// resend repeats the votes until the election is over, except while it waits for a better vote.
func (m *member) resend() {
	e := m.election
	m.afterInRole(e.wait, func() {
		if !m.agreed() {
			m.sendVotes()
		}
		e.wait = min(2*e.wait, lastResend)
		m.resend()
	})
}

// receiveVote processes a vote. A member that has a leader replies to a member that looks for it.
func (m *member) receiveVote(n notification) {
	if m.role != looking {
		if n.role == looking {
			m.sendVote(n.from)
		}
		return
	}
	if n.role != looking {
		m.join(n)
		return
	}
	e := m.election
	switch {
	case n.round > m.round:
		m.round = n.round
		clear(e.votes)
		v := m.own()
		if n.vote.compare(v) > 0 {
			v = n.vote
		}
		m.propose(v)
	case n.round < m.round:
		m.sendVote(n.from)
		return
	case n.vote.compare(m.vote) > 0:
		m.propose(n.vote)
	}
	e.votes[n.from] = n.vote
	if m.agreed() {
		m.settleVotes()
	}
}

// agreed reports whether a majority has the member's vote.
func (m *member) agreed() bool {
	count := 0
	for _, v := range m.election.votes { // a count: order does not matter
		if v == m.vote {
			count++
		}
	}
	return count >= m.majority()
}

// settleVotes ends the election unless a vote comes meanwhile.
func (m *member) settleVotes() {
	e := m.election
	e.settle++
	is := e.settle
	m.afterInRole(settleWait, func() {
		if e.settle == is && m.agreed() {
			m.elected()
		}
	})
}

// join processes the vote of a member that has a leader: this member follows the same one if a majority does.
func (m *member) join(n notification) {
	e := m.election
	if n.round == m.round {
		e.votes[n.from] = n.vote
	}
	e.others[n.from] = n
	count := 0
	for _, o := range e.others { // a count: order does not matter
		if o.vote.leader == n.vote.leader && o.vote.epoch == n.vote.epoch {
			count++
		}
	}
	sameRound := 0
	for _, o := range e.others { // a count: order does not matter
		if o.round == m.round && o.vote.leader == n.vote.leader {
			sameRound++
		}
	}
	if m.vote.leader == n.vote.leader && n.round == m.round { // its own vote counts in its own round
		sameRound++
	}
	if max(count, sameRound) < m.majority() || !m.leads(n) {
		return
	}
	m.round, m.vote = n.round, n.vote
	m.elected()
}

// leads reports whether the leader of n itself says that it leads (checkLeader).
func (m *member) leads(n notification) bool {
	if n.vote.leader == m.number {
		return n.round == m.round
	}
	return m.election.others[n.vote.leader].role == leadingRole
}

// elected ends the election.
func (m *member) elected() {
	m.term++
	m.election = nil
	if m.vote.leader == m.number {
		m.role = leadingRole
		m.beginLeading()
		return
	}
	m.role = followingRole
	m.beginFollowing()
}

// voteLink is the connection by which a member sends votes to another. What was not sent when it breaks is replaced by
// the next vote.
type voteLink struct {
	from, to *member
	conn     *network.Conn
	up       bool
	next     *notification
	dials    int
}

func (m *member) link(to int) *voteLink {
	if m.links[to] == nil {
		m.links[to] = &voteLink{from: m, to: m.ensemble.member(to)}
	}
	return m.links[to]
}

func (l *voteLink) send(n notification) {
	if l.up {
		l.conn.Send(network.Forward, network.Segment{Msg: n, Size: notificationSize})
		return
	}
	l.next = &n
	if l.conn == nil {
		l.dial()
	}
}

func (l *voteLink) dial() {
	m := l.from
	l.dials++
	end := &voteEnd{HostEnd: m.End(), link: l}
	c := m.World.Connect(m.Name, &l.to.Host, end, m.peerSlot(l.to), 2*l.dials)
	end.conn, l.conn = c, c
	m.After(connectWait, func() {
		if l.conn == c && !l.up {
			c.Die(network.Forward)
			l.conn = nil
		}
	})
}

// peerSlot is the slot of connections to another member.
func (m *member) peerSlot(to *member) int {
	return m.World.Slots.Server(network.NameHash(m.Name) ^ network.NameHash(to.Name)<<1)
}

// voteEnd is the dialing end of a voteLink.
type voteEnd struct {
	network.HostEnd
	link *voteLink
	conn *network.Conn
}

func (e *voteEnd) current() bool { return e.Alive() && e.link.conn == e.conn }

func (e *voteEnd) Receive(s network.Segment) {
	if l := e.link; e.current() && s.Kind == network.Accepted {
		l.up = true
		if n := l.next; n != nil {
			l.next = nil
			l.send(*n)
		}
	}
}

func (e *voteEnd) Broken(error) {
	if e.current() {
		e.link.conn, e.link.up = nil, false
	}
}
