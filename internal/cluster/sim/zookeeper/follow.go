package zookeeper

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// How a follower connects to the leader (Learner.connectToLeader).
const (
	leaderTries = 5
	leaderRetry = int64(100 * time.Millisecond)
)

// followership is the state of a follower, which dials the connection to the leader.
type followership struct {
	network.HostEnd
	member  *member
	conn    *network.Conn
	tries   int
	epoch   int64 // 0: not known yet
	heard   int64 // instant
	pending []proposal
	touched map[int64]int32 // sessions to report to the leader
	asked   map[int64]*clientConn
}

// beginFollowing connects to the leader.
func (m *member) beginFollowing() {
	m.follow = &followership{
		HostEnd: m.End(), member: m, heard: m.World.Now(), touched: map[int64]int32{}, asked: map[int64]*clientConn{},
	}
	m.follow.dial()
	m.follow.watch(m.World.Now() + m.settings.tick)
}

func (f *followership) dial() {
	m := f.member
	leader := m.ensemble.member(m.vote.leader)
	f.tries++
	m.tokens++
	end := &followEnd{followership: f}
	end.own = m.World.Connect(m.Name, &leader.Host, end, m.peerSlot(leader), 2*int(m.tokens)+1)
	f.conn = end.own
}

// watch gives up a leader that was silent for syncLimit ticks, or for initLimit ticks before this member serves. After
// a pause, a member first reads the messages of the meantime.
func (f *followership) watch(due int64) {
	m := f.member
	m.afterInRole(max(due-m.World.Now(), 1), func() {
		now, s := m.World.Now(), m.settings
		if now-due > s.tick {
			f.heard = now
		}
		limit := s.initLimit
		if m.serving {
			limit = s.syncLimit
		}
		if now-f.heard > limit*s.tick {
			m.look()
			return
		}
		f.watch(now + s.tick)
	})
}

func (f *followership) send(msg any) {
	f.conn.Send(network.Forward, network.Segment{Msg: msg, Size: sizeOf(msg)})
}

// followEnd is the follower's end of one connection to the leader.
type followEnd struct {
	*followership
	own *network.Conn
}

func (e *followEnd) current() bool {
	return e.Alive() && e.member.follow == e.followership && e.conn == e.own
}

func (e *followEnd) Receive(s network.Segment) {
	if !e.current() {
		return
	}
	m := e.member
	e.heard = m.World.Now()
	if s.Kind == network.Accepted {
		e.send(followerInfo{m.number, m.disk.accepted})
		return
	}
	e.obey(s.Msg)
}

// Broken dials again if the leader has not sent its epoch: it may not listen yet.
func (e *followEnd) Broken(error) {
	if !e.current() {
		return
	}
	if e.epoch != 0 || e.tries >= leaderTries {
		e.conn = nil
		e.member.look()
		return
	}
	e.conn = nil
	e.member.afterInRole(leaderRetry, e.dial)
}

// obey handles a message of the leader.
func (f *followership) obey(msg any) {
	m := f.member
	now := m.World.Now()
	switch msg := msg.(type) {
	case leaderInfo:
		f.enter(msg.epoch)
	case synchronize:
		f.synchronize(msg)
	case newLeader:
		m.disk.current = f.epoch
		m.disk.synced = len(m.disk.log) // with the snapshot
		f.send(ackNewLeader{})
	case upToDate:
		m.serving, m.vote.epoch = true, f.epoch
	case proposal:
		m.disk.append(now, msg.txn)
		f.pending = append(f.pending, msg)
		f.send(ackProposal{msg.txn.Zxid})
	case commit:
		if len(f.pending) == 0 || f.pending[0].txn.Zxid != msg.zxid {
			m.look() // a transaction was lost: ZooKeeper exits
			return
		}
		p := f.pending[0]
		f.pending = f.pending[1:]
		m.committed(p.txn, p.from)
	case leaderPing:
		f.send(pingReply{f.touches()})
	case synced:
		m.answer(msg.from, znode.Result{})
	case revalidation:
		if c := f.asked[msg.token]; c != nil {
			delete(f.asked, msg.token)
			c.validated(msg.valid)
		}
	}
}

// enter accepts the epoch of the leader, unless it has accepted a greater one.
func (f *followership) enter(epoch int64) {
	m := f.member
	if epoch < m.disk.accepted {
		m.look()
		return
	}
	current := m.disk.current
	if epoch == m.disk.accepted {
		current = -1 // acknowledged before
	}
	f.epoch, m.disk.accepted = epoch, epoch
	f.send(ackEpoch{current, m.tree.Zxid()})
}

// synchronize makes the data equal to the leader's.
func (f *followership) synchronize(s synchronize) {
	m := f.member
	switch {
	case s.snapshot != nil:
		m.disk.base, m.disk.log, m.disk.synced = s.snapshot, nil, 0
		m.tree = m.disk.load()
	case s.truncate >= 0:
		m.disk.truncate(s.truncate)
		m.tree = m.disk.load()
	}
	for _, x := range s.txns {
		m.disk.append(m.World.Now(), x)
		m.tree.Apply(x)
	}
}

// touches are the sessions whose clients were heard from since the last ping.
func (f *followership) touches() (list []touch) {
	for session, timeout := range f.touched { // in any order: they are independent
		list = append(list, touch{session, timeout})
	}
	clear(f.touched)
	return list
}
