package zookeeper

import (
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// Messages between the leader and a follower.
type (
	followerInfo struct {
		from     int
		accepted int64 // epoch
	}
	leaderInfo  struct{ epoch int64 }
	ackEpoch    struct{ current, zxid int64 }
	synchronize struct { // DIFF, TRUNC or SNAP
		snapshot *znode.Tree // nil: none
		truncate int64       // the last transaction to keep; -1: all
		txns     []znode.Txn
	}
	newLeader    struct{}
	ackNewLeader struct{}
	upToDate     struct{}
	proposal     struct {
		txn  znode.Txn
		from origin
	}
	ackProposal struct{ zxid int64 }
	commit      struct{ zxid int64 }
	leaderPing  struct{}
	pingReply   struct{ touched []touch }
	forwarded   struct { // a write or a sync of a follower's client
		request znode.Request
		session int64
		from    origin
	}
	synced       struct{ from origin }
	revalidate   struct{ session, token int64 }
	revalidation struct {
		token int64
		valid bool
	}
)

// touch is a session whose client was heard from.
type touch struct {
	session int64
	timeout int32
}

// origin is where a request came from; the token is the member's.
type origin struct {
	member, life int
	token        int64
}

const peerMessageSize = 64 // of a message without data

func sizeOf(msg any) int64 {
	size := int64(peerMessageSize)
	switch m := msg.(type) {
	case proposal:
		size += int64(len(m.txn.Path) + len(m.txn.Data))
	case forwarded:
		size += int64(len(m.request.Path) + len(m.request.Data))
	}
	return size
}

// leadership is the state of a leader.
type leadership struct {
	member   *member
	epoch    int64         // 0: not known yet
	accepted map[int]int64 // epochs of the members that follow, and its own
	elected  map[int]bool  // members that have acknowledged the epoch
	ready    map[int]bool  // members that have all transactions of the leader
	learners []*learner
	tick     int64

	prepared *znode.Tree // with the transactions that are not committed yet
	next     int64       // zxid
	proposed []*proposed
	sessions map[int64]*tracked
	closing  map[int64]bool // sessions whose end was proposed
}

// proposed is a transaction that waits for a majority.
type proposed struct {
	proposal
	acks  map[int]bool
	tick  int64
	syncs []origin // requests to sync that wait for it
}

// learner is the leader's side of a follower.
type learner struct {
	conn     *network.Conn
	number   int
	informed bool  // it was sent the epoch
	forward  bool  // it gets proposals
	deadline int64 // tick until which it counts, unless it is heard from
	zxid     int64
}

func (l *learner) send(msg any) {
	l.conn.Send(network.Back, network.Segment{Msg: msg, Size: sizeOf(msg)})
}

// beginLeading waits for a majority of followers.
func (m *member) beginLeading() {
	m.lead = &leadership{
		member: m, accepted: map[int]int64{m.number: m.disk.accepted}, elected: map[int]bool{}, ready: map[int]bool{},
		sessions: map[int64]*tracked{}, closing: map[int64]bool{},
	}
	m.afterInRole(m.settings.initLimit*m.settings.tick, func() {
		if !m.serving {
			m.look()
		}
	})
}

// fromLearner handles a message of a follower.
func (m *member) fromLearner(e *inbound, msg any) {
	if info, ok := msg.(followerInfo); ok && m.lead != nil {
		e.learner = &learner{conn: e.conn, number: info.from}
		m.lead.join(e.learner, info.accepted)
		return
	}
	l := e.learner
	if m.lead == nil || l == nil || !slices.Contains(m.lead.learners, l) {
		e.conn.Die(network.Back) // no leader listens at the port
		return
	}
	m.lead.Receive(l, msg)
}

// join adds a follower. The new epoch is greater than the epoch of each member of a majority.
func (d *leadership) join(l *learner, accepted int64) {
	m := d.member
	d.learners = append(d.learners, l)
	l.deadline = d.tick + m.settings.initLimit + m.settings.syncLimit
	if d.epoch == 0 {
		d.accepted[l.number] = accepted
		if len(d.accepted) < m.majority() {
			return
		}
		for _, a := range d.accepted { // a maximum: order does not matter
			d.epoch = max(d.epoch, a+1)
		}
		m.disk.accepted = d.epoch
		d.next = d.epoch << 32
		d.elected[m.number] = true
	}
	for _, l := range d.learners {
		if !l.informed {
			l.informed = true
			l.send(leaderInfo{d.epoch})
		}
	}
}

func (d *leadership) Receive(l *learner, msg any) {
	m := d.member
	if d.ready[l.number] {
		l.deadline = d.tick + m.settings.syncLimit
	}
	switch msg := msg.(type) {
	case ackEpoch:
		mine := vote{zxid: m.tree.Zxid(), epoch: m.disk.current}
		if (vote{zxid: msg.zxid, epoch: msg.current}).compare(mine) > 0 && len(d.elected) < m.majority() {
			l.conn.Die(network.Back) // the follower is ahead of the leader
			d.forget(l)
			return
		}
		l.zxid = msg.zxid
		d.elected[l.number] = true
		if len(d.elected) < m.majority() {
			return
		}
		if d.prepared == nil {
			m.disk.current = d.epoch
			d.prepared = m.tree.Clone()
			d.ready[m.number] = true
		}
		for _, l := range d.learners {
			if d.elected[l.number] && l.informed && !l.forward {
				d.synchronize(l)
			}
		}
	case ackNewLeader:
		d.ready[l.number] = true
		switch {
		case m.serving:
			l.send(upToDate{})
		case len(d.ready) >= m.majority():
			d.begin()
		}
	case ackProposal:
		d.acknowledged(l.number, msg.zxid)
	case pingReply:
		for _, t := range msg.touched {
			d.touch(t.session, t.timeout)
		}
	case forwarded:
		d.request(msg.request, msg.session, msg.from)
	case revalidate:
		valid := d.revalidate(msg.session, l.number)
		l.send(revalidation{msg.token, valid})
	}
}

// forget removes a follower whose connection has ended.
func (d *leadership) forget(l *learner) {
	d.learners = slices.DeleteFunc(d.learners, func(other *learner) bool { return other == l })
}

// synchronize sends a follower the missing transactions, and from then on every proposal.
func (d *leadership) synchronize(l *learner) {
	disk, last := &d.member.disk, d.member.tree.Zxid()
	s := synchronize{truncate: -1}
	if l.zxid < disk.first() {
		s.snapshot = d.member.tree.Clone()
	} else {
		at := disk.after(l.zxid)
		floor := disk.first()
		if at > 0 {
			floor = disk.log[at-1].txn.Zxid
		}
		floor = min(floor, last)
		if floor != l.zxid {
			s.truncate = floor
		}
		for _, one := range disk.log[disk.after(floor):disk.after(last)] {
			s.txns = append(s.txns, one.txn)
		}
	}
	l.forward = true
	l.send(s)
	l.send(newLeader{})
	for _, p := range d.proposed {
		l.send(p.proposal)
	}
}

// begin serves clients: a majority has all that the leader has. Every session lasts for its whole timeout from now on.
func (d *leadership) begin() {
	m := d.member
	m.tree.SetZxid(d.epoch << 32)
	d.prepared.SetZxid(d.epoch << 32)
	m.vote.epoch = d.epoch
	for id, timeout := range m.tree.Sessions() { // in any order: they are independent
		d.sessions[id] = &tracked{timeout: timeout, expires: d.bucket(timeout)}
	}
	m.serving = true
	for _, l := range d.learners {
		if d.ready[l.number] {
			l.send(upToDate{})
		}
	}
	d.ping()
	d.expire()
	d.collect()
}

// ping is the loop of a leader (Leader.lead): each half tick it pings, and each tick it checks that a majority follows.
func (d *leadership) ping() {
	m := d.member
	half := false
	var loop func()
	loop = func() {
		if half {
			d.tick++
			if !d.followed() {
				m.look()
				return
			}
		}
		half = !half
		for _, l := range slices.Clone(d.learners) {
			if len(d.proposed) > 0 && !d.proposed[0].acks[l.number] && l.forward &&
				d.tick-d.proposed[0].tick > m.settings.syncLimit {
				l.conn.Die(network.Back)
				d.forget(l)
				continue
			}
			if l.forward {
				l.send(leaderPing{})
			}
		}
		m.afterInRole(m.settings.tick/2, loop)
	}
	m.afterInRole(m.settings.tick/2, loop)
}

// followed reports whether a majority was heard from within syncLimit.
func (d *leadership) followed() bool {
	count := 1
	for _, l := range d.learners {
		if d.tick <= l.deadline {
			count++
		}
	}
	return count >= d.member.majority()
}

// request prepares and proposes a write; a sync waits for earlier proposals.
func (d *leadership) request(r znode.Request, session int64, from origin) {
	if !d.member.serving {
		return
	}
	if r.Op == znode.OpSync {
		if n := len(d.proposed); n > 0 {
			d.proposed[n-1].syncs = append(d.proposed[n-1].syncs, from)
		} else {
			d.synced(from)
		}
		return
	}
	d.propose(r, session, from)
}

func (d *leadership) synced(from origin) {
	m := d.member
	if from.member == m.number {
		m.answer(from, znode.Result{})
		return
	}
	for _, l := range d.learners {
		if l.number == from.member {
			l.send(synced{from})
		}
	}
}

// noSession is the session of requests by the servers or an operator.
const noSession = 0

func (d *leadership) propose(r znode.Request, session int64, from origin) {
	m := d.member
	d.next++
	refused := znode.Code(0)
	if session != noSession {
		refused = d.check(session, from.member)
	}
	switch r.Op {
	case znode.OpCreateSession:
		d.sessions[session] = &tracked{timeout: r.Timeout, expires: d.bucket(r.Timeout), owner: from.member}
	case znode.OpCloseSession:
		d.closing[session] = true
	}
	x := d.prepared.Prepare(r, session, d.next, m.Wall().UnixMilli(), refused)
	p := &proposed{proposal: proposal{x, from}, acks: map[int]bool{}, tick: d.tick}
	d.proposed = append(d.proposed, p)
	m.disk.append(m.World.Now(), x)
	for _, l := range d.learners {
		if l.forward {
			l.send(p.proposal)
		}
	}
	d.acknowledged(m.number, x.Zxid)
}

// acknowledged counts an acknowledgement, and commits in order the proposals that a majority has.
func (d *leadership) acknowledged(number int, zxid int64) {
	for _, p := range d.proposed {
		if p.txn.Zxid == zxid {
			p.acks[number] = true
			break
		}
	}
	for len(d.proposed) > 0 && len(d.proposed[0].acks) >= d.member.majority() {
		p := d.proposed[0]
		d.proposed = d.proposed[1:]
		for _, l := range d.learners {
			if l.forward {
				l.send(commit{p.txn.Zxid})
			}
		}
		d.member.committed(p.txn, p.from)
		for _, from := range p.syncs {
			d.synced(from)
		}
	}
}
