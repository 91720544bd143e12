package sim

import (
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// Messages between Sentinels and servers, in place of the bytes of the commands and replies of the same names.
type (
	ping        struct{}
	pong        struct{}
	infoRequest struct{}
	infoReply   struct{ info report }
	subscribe   struct{}
	hello       struct {
		from, addr, master string
		epoch, configEpoch int64
	}
	replicaOf struct{ addr string } // also CONFIG REWRITE and CLIENT KILL
	isDown    struct {
		master, id string
		epoch      int64
	}
	isDownReply struct {
		down   bool
		leader string
		epoch  int64
	}
)

// report is what a Sentinel reads from INFO.
type report struct {
	id       string
	replica  bool
	replicas []string // addresses
	master   string
	linkUp   bool
	linkDown int64 // milliseconds
	priority int
	offset   int64
}

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
	i.wire.send(ping{}, smallSize)
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
			w.send(subscribe{}, smallSize)
		}
		return
	}
	switch m := seg.Msg.(type) {
	case pong:
		i.lastPong, i.lastAvail, i.actPing = s.Millis(), s.Millis(), 0
	case infoReply:
		s.refreshInfo(i, m.info)
	case hello:
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
		i.wire.send(infoRequest{}, smallSize)
	}
	period := min(s.downAfter(), pingPeriod)
	if now-i.lastPong > period && now-i.lastPing > period/2 {
		s.sendPing(i)
	}
	if now-i.lastPub > publishPeriod {
		i.lastPub = now
		i.wire.send(s.hello(), helloSize)
	}
}

func (s *sentinel) hello() hello {
	return hello{from: s.id, addr: s.Addr, epoch: s.epoch, master: s.currentMaster(), configEpoch: s.master.configEpoch}
}

// helloSoon sends a hello to every instance at the next timer (sentinelForceHelloUpdateForMaster).
func (s *sentinel) helloSoon() {
	for _, i := range s.all() {
		i.lastPub = min(i.lastPub, s.Millis()-publishPeriod-1)
	}
}

// receiveHello handles a hello message of another Sentinel.
func (s *sentinel) receiveHello(m hello) {
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

// fromSentinel handles a Sentinel's message to a data server.
func (n *node) fromSentinel(s *session, msg any) {
	reply := func(msg any, size int64) { s.conn.Send(network.Back, network.Segment{Msg: msg, Size: size}) }
	switch m := msg.(type) {
	case ping:
		reply(pong{}, smallSize)
	case infoRequest:
		reply(infoReply{n.report()}, infoReplySize)
	case subscribe:
		n.listeners = append(n.listeners, s)
	case hello:
		for _, l := range n.listeners {
			l.conn.Send(network.Back, network.Segment{Msg: m, Size: helloSize})
		}
	case replicaOf:
		n.follow(m.addr)
		n.repl.saved = m.addr
		n.harness.ask([]string{"CLIENT", "KILL", "TYPE", "normal"}, []string{"CLIENT", "KILL", "TYPE", "pubsub"})
		n.done()
	}
}

// report is the server's INFO.
func (n *node) report() report {
	r := &n.repl
	all := report{id: n.id, replica: r.master != "", master: r.master, priority: n.priority, offset: r.offset}
	for _, a := range r.replicas {
		all.replicas = append(all.replicas, a.addr)
	}
	if all.replica {
		all.linkUp = n.linkState() == linkConnected
		if !all.linkUp {
			all.linkDown = max(1000, (n.World.Now()-r.downAt)/1e6)
		}
	}
	return all
}
