package zookeeper

import (
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// tracked is a session as the leader knows it (SessionTrackerImpl).
type tracked struct {
	timeout int32
	expires int64 // instant
	owner   int   // the member through which its client last connected; 0: not known
}

// bucket is when a session expires if its client is heard from now: at the first tick after its timeout.
func (d *leadership) bucket(timeout int32) int64 {
	tick := d.member.settings.tick
	return ((d.member.World.Now()+int64(timeout)*int64(time.Millisecond))/tick + 1) * tick
}

// touch extends a session; false: there is none, or its end was proposed.
func (d *leadership) touch(session int64, timeout int32) bool {
	t := d.sessions[session]
	if t == nil || d.closing[session] {
		return false
	}
	t.expires = max(t.expires, d.bucket(timeout))
	return true
}

// revalidate is touch for a client that has connected to a member.
func (d *leadership) revalidate(session int64, member int) bool {
	t := d.sessions[session]
	if t == nil || !d.touch(session, t.timeout) {
		return false
	}
	t.owner = member
	return true
}

// check refuses a request of a session that has ended, or whose client has connected to another member meanwhile.
func (d *leadership) check(session int64, member int) znode.Code {
	t := d.sessions[session]
	switch {
	case t == nil || d.closing[session]:
		return znode.SessionExpired
	case t.owner == 0:
		t.owner = member
	case t.owner != member:
		return znode.SessionMoved
	}
	return 0
}

// expire proposes, at each tick, the end of sessions whose clients were not heard from in time.
func (d *leadership) expire() {
	m := d.member
	term, tick := m.term, m.settings.tick
	m.At((m.World.Now()/tick+1)*tick, func() {
		if m.term != term {
			return
		}
		for _, id := range slices.Sorted(maps.Keys(d.sessions)) {
			if t := d.sessions[id]; t.expires <= m.World.Now() && !d.closing[id] {
				d.propose(znode.Request{Op: znode.OpCloseSession}, id, origin{})
			}
		}
		d.expire()
	})
}

// collectEvery is how often the leader removes empty containers (znode.container.checkIntervalMs).
const collectEvery = int64(time.Minute)

// collect removes containers that have had children and have none (ContainerManager).
func (d *leadership) collect() {
	d.member.afterInRole(collectEvery, func() {
		for _, path := range d.member.tree.EmptyContainers() {
			d.propose(znode.Request{Op: znode.OpDeleteContainer, Path: path}, noSession, origin{})
		}
		d.collect()
	})
}
