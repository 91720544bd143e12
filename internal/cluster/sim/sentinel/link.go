package sentinel

import (
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// wire is a Sentinel's connection to an instance.
type wire struct {
	network.HostEnd
	sentinel *sentinel
	instance *instance
	conn     *network.Conn
	up       bool
	since    int64
}

// reconnect connects to i if it is disconnected, at most once in a ping period.
func (s *sentinel) reconnect(i *instance) {
	now := s.Millis()
	if i.wire != nil || now-i.lastReconn < pingPeriod {
		return
	}
	i.lastReconn = now
	h := s.World.Addresses[i.addr]
	w := &wire{HostEnd: s.End(), sentinel: s, instance: i, since: now}
	i.wire = w
	s.dials++
	w.conn = s.Connect(h, w, s.dials)
	s.sendPing(i) // sent once connected; the timeout counts from now
}

func (s *sentinel) sendPing(i *instance) {
	now := s.Millis()
	i.lastPing = now
	if i.actPing == 0 {
		i.actPing = now
	}
	i.wire.send(Ping{}, SmallSize)
}

func (w *wire) send(msg any, size int64) {
	w.conn.Send(network.Forward, network.Segment{Msg: msg, Size: size})
}

func (w *wire) current() bool { return w.Alive() && w.instance.wire == w }

func (w *wire) Receive(seg network.Segment) {
	s, i := w.sentinel, w.instance
	if !w.current() {
		return
	}
	if seg.Kind == network.Accepted {
		w.up = true
		if i.kind != aSentinel {
			w.send(Subscribe{}, SmallSize)
		}
		return
	}
	switch m := seg.Msg.(type) {
	case Pong:
		i.lastPong, i.lastAvail, i.actPing = s.Millis(), s.Millis(), 0
	case InfoReply:
		s.refreshInfo(i, m.Info)
	case Hello:
		s.receiveHello(m)
	case isDownReply:
		i.downReplyAt, i.saysDown = s.Millis(), m.down
		if m.leader != "" {
			i.leader, i.leaderEpoch = m.leader, m.epoch
		}
	}
	s.done()
}

func (w *wire) Broken(error) {
	if w.current() {
		w.instance.wire = nil
	}
}

// close closes the connection.
func (w *wire) close() {
	w.instance.wire = nil
	w.conn.Die(network.Forward)
}

// talk sends i the PING, INFO and hello that are due (sentinelSendPeriodicCommands).
func (s *sentinel) talk(i *instance) {
	if i.wire == nil || !i.wire.up {
		return
	}
	now, every := s.Millis(), int64(infoPeriod)
	m := s.master
	if i.kind == aReplica && (m.odown || m.inProgress || i.linkDown != 0) {
		every = 1000
	}
	if i.kind != aSentinel && (i.infoAt == 0 || now-i.infoAt > every) {
		i.wire.send(InfoRequest{}, SmallSize)
	}
	period := min(s.downAfter(), pingPeriod)
	if now-i.lastPong > period && now-i.lastPing > period/2 {
		s.sendPing(i)
	}
	if now-i.lastPub > publishPeriod {
		i.lastPub = now
		i.wire.send(s.hello(), HelloSize)
	}
}

func (s *sentinel) hello() Hello {
	return Hello{from: s.id, addr: s.Addr, epoch: s.epoch, master: s.currentMaster(), configEpoch: s.master.configEpoch}
}

// helloSoon sends a hello to every instance at the next timer (sentinelForceHelloUpdateForMaster).
func (s *sentinel) helloSoon() {
	for _, i := range s.all() {
		i.lastPub = min(i.lastPub, s.Millis()-publishPeriod-1)
	}
}

// receiveHello handles a hello message of another Sentinel.
func (s *sentinel) receiveHello(m Hello) {
	if m.from == s.id {
		return
	}
	if !slices.ContainsFunc(s.others, func(o *instance) bool { return o.id == m.from }) {
		o := s.newInstance(aSentinel, m.addr)
		o.id = m.from
		s.others = append(s.others, o)
		s.event("+sentinel", o)
	}
	if m.epoch > s.epoch {
		s.epoch = m.epoch
		s.event("+new-epoch", s.master)
	}
	if m.configEpoch <= s.master.configEpoch {
		return
	}
	s.master.configEpoch = m.configEpoch
	if m.master != s.master.addr {
		s.event("+config-update-from", s.master)
		s.switchMaster(m.master)
	}
}
