package sentinel

import "errors"

// askOthers sends is-master-down-by-addr to the other Sentinels, in a failover with a request for their votes.
func (s *sentinel) askOthers(m *instance, forced bool) {
	now := s.Millis()
	for _, o := range s.others {
		since := now - o.downReplyAt
		if since > askPeriod*5 {
			o.saysDown, o.leader = false, ""
		}
		if !m.sdown || o.wire == nil || !o.wire.up || !forced && o.downReplyAt != 0 && since < askPeriod {
			continue
		}
		q := isDown{master: m.addr, epoch: s.epoch}
		if m.state > noFailover {
			q.id = s.id
		}
		o.wire.send(q, SmallSize*4)
	}
}

// replyIsDown replies to is-master-down-by-addr, and votes.
func (s *sentinel) replyIsDown(q isDown) isDownReply {
	m := s.master
	a := isDownReply{down: s.tilt == 0 && q.master == m.addr && m.sdown}
	if q.master == m.addr && q.id != "" {
		a.leader, a.epoch = s.vote(q.epoch, q.id)
	}
	return a
}

// vote votes for id in an epoch, if this Sentinel has not voted in it (sentinelVoteLeader).
func (s *sentinel) vote(epoch int64, id string) (leader string, leaderEpoch int64) {
	m := s.master
	if epoch > s.epoch {
		s.epoch = epoch
		s.event("+new-epoch", m)
	}
	if m.leaderEpoch < epoch && s.epoch <= epoch {
		m.leader, m.leaderEpoch = id, s.epoch
		s.publish("+vote-for-leader", id)
		if id != s.id { // give the other one time
			m.failoverStart = s.Millis() + s.rng.Int64N(maxDesync)
		}
	}
	return m.leader, m.leaderEpoch
}

// elected is the Sentinel with a majority of all votes in an epoch, and the quorum; "" if there is none
// (sentinelGetLeader).
func (s *sentinel) elected(epoch int64) string {
	votes := map[string]int{}
	for _, o := range s.others {
		if o.leader != "" && o.leaderEpoch == s.epoch {
			votes[o.leader]++
		}
	}
	best := func() (string, int) {
		id, n := "", 0
		for _, o := range s.all() { // in a fixed order, unlike a map
			if o.kind != aReplica && o.leader != "" && votes[o.leader] > n {
				id, n = o.leader, votes[o.leader]
			}
		}
		return id, n
	}
	mine, _ := best()
	if mine == "" {
		mine = s.id
	}
	if leader, at := s.vote(epoch, mine); leader != "" && at == epoch {
		votes[leader]++
	}
	id, n := best()
	if n < max((len(s.others)+1)/2+1, s.config.Quorum) {
		return ""
	}
	return id
}

// mayStart reports whether this Sentinel would start a failover now: the last one that it started or voted for is over.
// With a quorum of 1 an unconnected Sentinel starts one by itself.
func (s *sentinel) mayStart() bool {
	m := s.master
	return !m.inProgress && (m.failoverStart == 0 || s.Millis()-m.failoverStart >= failoverTimeout*2)
}

// startIfNeeded starts a failover of a master that is objectively down.
func (s *sentinel) startIfNeeded(m *instance) bool {
	if !m.odown || !s.mayStart() {
		return false
	}
	s.startFailover(m)
	return true
}

func (s *sentinel) startFailover(m *instance) {
	now := s.Millis()
	m.state, m.inProgress = waitStart, true
	s.epoch++
	m.failoverEpoch = s.epoch
	s.event("+new-epoch", m)
	s.event("+try-failover", m)
	m.failoverStart, m.stateChange = now+s.rng.Int64N(maxDesync), now
}

// errNoReplica and errInProgress are Redis' error replies.
var (
	errNoReplica  = errors.New("NOGOODSLAVE No suitable replica to promote")
	errInProgress = errors.New("INPROG Failover already in progress")
)

// forceFailover is SENTINEL FAILOVER: without a vote.
func (s *sentinel) forceFailover() error {
	m := s.master
	if m.inProgress {
		return errInProgress
	}
	if s.best() == nil {
		return errNoReplica
	}
	s.startFailover(m)
	m.forced = true
	return nil
}

// best is the replica to promote, by priority, offset and run ID (sentinelSelectSlave).
func (s *sentinel) best() *instance {
	m, now := s.master, s.Millis()
	longest := s.downAfter() * 10
	fresh := int64(infoPeriod * 3)
	if m.sdown {
		longest += now - m.sdownSince
		fresh = pingPeriod * 5
	}
	var best *instance
	for _, r := range s.replicas {
		if r.sdown || r.odown || r.wire == nil || !r.wire.up || now-r.lastAvail > pingPeriod*5 || r.priority == 0 ||
			now-r.infoAt > fresh || r.linkDown > longest {
			continue
		}
		if best == nil || r.betterThan(best) {
			best = r
		}
	}
	return best
}

func (i *instance) betterThan(o *instance) bool {
	switch {
	case i.priority != o.priority:
		return i.priority < o.priority
	case i.offset != o.offset:
		return i.offset > o.offset
	}
	return i.id < o.id
}

// advance is sentinelFailoverStateMachine.
func (s *sentinel) advance(m *instance) {
	if !m.inProgress {
		return
	}
	now := s.Millis()
	switch m.state {
	case waitStart:
		s.awaitVotes(m)
	case selectReplica:
		r := s.best()
		if r == nil {
			s.abort("-failover-abort-no-good-slave")
			return
		}
		s.event("+selected-slave", r)
		r.promoted, m.winner = true, r
		s.to(sendReplicaOfNoOne, "+failover-state-send-slaveof-noone", r)
	case sendReplicaOfNoOne:
		if r := m.winner; r.wire != nil && r.wire.up {
			r.wire.send(ReplicaOf{}, SmallSize*6)
			s.to(waitPromotion, "+failover-state-wait-promotion", r)
		} else if now-m.stateChange > failoverTimeout {
			s.abort("-failover-abort-slave-timeout")
		}
	case waitPromotion:
		if now-m.stateChange > failoverTimeout {
			s.abort("-failover-abort-slave-timeout")
		}
	case reconfReplicas:
		s.reconfigure(m)
	}
}

func (s *sentinel) awaitVotes(m *instance) {
	if s.elected(m.failoverEpoch) != s.id && !m.forced {
		if s.Millis()-m.failoverStart > min(electionTimeout, failoverTimeout) {
			s.abort("-failover-abort-not-elected")
		}
		return
	}
	s.event("+elected-leader", m)
	s.to(selectReplica, "+failover-state-select-slave", m)
}

func (s *sentinel) to(state failoverState, event string, i *instance) {
	s.master.state, s.master.stateChange = state, s.Millis()
	s.event(event, i)
}

func (s *sentinel) abort(why string) {
	m := s.master
	s.event(why, m)
	m.inProgress, m.forced = false, false
	m.state, m.stateChange = noFailover, s.Millis()
	if m.winner != nil {
		m.winner.promoted, m.winner = false, nil
	}
}

// reconfigure sends REPLICAOF to the other replicas, all at once (parallel-syncs is their number), and detects the
// end of the failover.
func (s *sentinel) reconfigure(m *instance) {
	now := s.Millis()
	for _, r := range s.replicas {
		if r.promoted || r.reconfDone {
			continue
		}
		if r.reconfSent && now-r.reconfSentAt > reconfTimeout {
			s.event("-slave-reconf-sent-timeout", r)
			r.reconfSent, r.reconfDone = false, true
		}
		if r.reconfSent || r.reconfInProgress || r.reconfDone || r.wire == nil || !r.wire.up {
			continue
		}
		s.sendReplicaOf(r, m.winner.addr)
		r.reconfSent, r.reconfSentAt = true, now
		s.event("+slave-reconf-sent", r)
	}
	s.detectEnd(m)
}

func (s *sentinel) detectEnd(m *instance) {
	left := 0
	for _, r := range s.replicas {
		if !r.promoted && !r.reconfDone && !r.sdown {
			left++
		}
	}
	late := s.Millis()-m.stateChange > failoverTimeout
	if left > 0 && !late || m.winner.sdown {
		return
	}
	if left > 0 {
		s.event("+failover-end-for-timeout", m)
		for _, r := range s.replicas {
			if !r.promoted && !r.reconfDone && !r.reconfSent {
				s.sendReplicaOf(r, m.winner.addr)
			}
		}
	}
	s.event("+failover-end", m)
	m.state, m.stateChange = updateConfig, s.Millis()
}
