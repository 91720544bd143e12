package sentinel

import "strings"

// refreshInfo processes the INFO reply of i (sentinelRefreshInstanceInfo).
func (s *sentinel) refreshInfo(i *instance, r Info) {
	now := s.Millis()
	i.infoAt, i.id = now, r.ID
	role := aMaster
	if r.Replica {
		role = aReplica
	}
	if i.role != role {
		i.role, i.roleAt = role, now
		if role == aReplica {
			i.confAt = now
		}
		s.event(map[bool]string{true: "+role-change", false: "-role-change"}[role == i.kind], i)
	}
	if role == aReplica {
		if i.master != r.Master {
			i.master, i.confAt = r.Master, now
		}
		i.linkUp, i.linkDown, i.priority, i.offset = r.LinkUp, r.LinkDown, r.Priority, r.Offset
	} else {
		i.linkDown = 0
		for _, addr := range r.Replicas {
			s.found(i, addr)
		}
	}
	if s.tilt != 0 {
		return
	}
	if i.kind == aReplica && role == aMaster {
		s.unexpectedMaster(i)
	}
	if i.kind == aReplica && role == aReplica {
		s.checkFollows(i)
		s.checkReconfigured(i)
	}
}

// found adds a replica that the master's INFO lists.
func (s *sentinel) found(m *instance, addr string) {
	if m.kind != aMaster {
		return
	}
	for _, r := range s.replicas {
		if r.addr == addr {
			return
		}
	}
	r := s.newInstance(aReplica, addr)
	s.replicas = append(s.replicas, r)
	s.event("+slave", r)
}

// unexpectedMaster handles a replica that reports the role master. Either this Sentinel promoted it, or it is
// reconfigured, after a wait in which a newer configuration may arrive.
func (s *sentinel) unexpectedMaster(i *instance) {
	m, now := s.master, s.Millis()
	if i.promoted && m.inProgress && m.state == waitPromotion {
		m.configEpoch = m.failoverEpoch
		m.state, m.stateChange = reconfReplicas, now
		s.event("+promoted-slave", i)
		s.event("+failover-state-reconf-slaves", m)
		s.helloSoon()
		return
	}
	const wait = publishPeriod * 4
	if !i.promoted && s.sane() && s.noDownFor(i, wait) && now-i.roleAt > wait {
		s.sendReplicaOf(i, m.addr)
		s.event("+convert-to-slave", i)
	}
}

// checkFollows reconfigures a replica that follows another server than the master.
func (s *sentinel) checkFollows(i *instance) {
	m := s.master
	if i.master != m.addr && m.state == noFailover && s.sane() && s.noDownFor(i, failoverTimeout) &&
		s.Millis()-i.confAt > failoverTimeout {
		s.sendReplicaOf(i, m.addr)
		s.event("+fix-slave-config", i)
	}
}

// checkReconfigured tracks a replica that was reconfigured in the failover.
func (s *sentinel) checkReconfigured(i *instance) {
	m := s.master
	if i.reconfSent && m.winner != nil && i.master == m.winner.addr {
		i.reconfSent, i.reconfInProgress = false, true
		s.event("+slave-reconf-inprog", i)
	}
	if i.reconfInProgress && i.linkUp {
		i.reconfInProgress, i.reconfDone = false, true
		s.event("+slave-reconf-done", i)
	}
}

func (s *sentinel) sendReplicaOf(i *instance, addr string) {
	if i.wire != nil {
		i.wire.send(ReplicaOf{addr}, SmallSize*6)
	}
}

// switchMaster makes the server at addr the monitored master and the former master a replica
// (sentinelResetMasterAndChangeAddress).
func (s *sentinel) switchMaster(addr string) {
	m := s.master
	was := m.addr
	s.publish("+switch-master", s.config.Master+" "+hostPort(was)+" "+hostPort(addr))
	var replicas []*instance
	for _, r := range s.replicas {
		if r.wire != nil {
			r.wire.close()
		}
		if r.addr != addr {
			replicas = append(replicas, s.newInstance(aReplica, r.addr))
		}
	}
	if was != addr {
		replicas = append(replicas, s.newInstance(aReplica, was))
	}
	if m.wire != nil {
		m.wire.close()
	}
	m.addr, m.id = addr, ""
	s.refresh(m)
	s.replicas = replicas
}

// hostPort is an address in the format of events.
func hostPort(addr string) string { return strings.Replace(addr, ":", " ", 1) }
