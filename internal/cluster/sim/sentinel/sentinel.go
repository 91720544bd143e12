// Package sentinel simulates Redis Sentinels on the network of package network: Redis' sentinel.c (7.0) with the same
// periods, conditions and states, and names of this package. It knows servers by their addresses and by the messages
// that it exchanges with them.
package sentinel

import (
	"math/rand/v2"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// Periods, in milliseconds of the cluster, and states.
const (
	pingPeriod         = 1000
	infoPeriod         = 10_000
	askPeriod          = 1000
	publishPeriod      = 2000
	electionTimeout    = 10_000
	maxDesync          = 1000
	reconfTimeout      = 10_000
	minLinkReconnect   = 15_000
	tiltTrigger        = 2000
	tiltPeriod         = 30_000
	failoverTimeout    = 2000 // as package process sets it
	slowestTimer       = 100  // hz 10
	fastestTimer       = 52   // hz 19: drawn, to desynchronize Sentinels
	port               = 26379
	noFailover         = failoverState(0)
	waitStart          = failoverState(1)
	selectReplica      = failoverState(2)
	sendReplicaOfNoOne = failoverState(3)
	waitPromotion      = failoverState(4)
	reconfReplicas     = failoverState(5)
	updateConfig       = failoverState(6)
)

type failoverState int

// sentinel is one Sentinel that watches one master.
type sentinel struct {
	network.Host
	group  *Sentinels
	config Config
	id     string
	rng    *rand.Rand
	server *engine.Server // for its clients
	events *engine.Conn   // publishes events to them

	// What its configuration file keeps.
	epoch    int64 // current_epoch
	master   *instance
	replicas []*instance
	others   []*instance

	dirty    []*session
	owed     [][2]string // messages to publish
	previous int64       // last run of the timer
	tilt     int64       // start of TILT mode; 0: not in it
	dials    int
	history  []string // of events
}

// kindOf is the kind of an instance.
type kindOf int

const (
	aMaster kindOf = iota
	aReplica
	aSentinel
)

// instance is a server or Sentinel as one Sentinel sees it (sentinelRedisInstance).
type instance struct {
	kind kindOf
	addr string
	id   string // run id
	wire *wire  // nil: disconnected

	actPing, lastPing, lastPong, lastAvail, lastReconn, lastPub int64

	sdown, odown           bool
	sdownSince, odownSince int64

	// From its INFO.
	infoAt   int64
	role     kindOf
	roleAt   int64
	confAt   int64 // when its master_host or master_port last changed
	master   string
	linkUp   bool
	linkDown int64 // master_link_down_since in milliseconds
	priority int
	offset   int64

	// A replica in a failover.
	promoted, reconfSent, reconfInProgress, reconfDone bool
	reconfSentAt                                       int64

	// Another Sentinel's reply to is-master-down-by-addr; at the master, this Sentinel's own vote.
	saysDown    bool
	leader      string
	leaderEpoch int64
	downReplyAt int64

	// The master.
	configEpoch   int64
	state         failoverState
	inProgress    bool
	forced        bool
	failoverEpoch int64
	failoverStart int64
	stateChange   int64
	winner        *instance
}

// initialize gives a Sentinel that never ran all instances, as its configuration file does.
func (s *sentinel) initialize() {
	s.master = s.newInstance(aMaster, s.config.Servers[0])
	for _, addr := range s.config.Servers[1:] {
		s.replicas = append(s.replicas, s.newInstance(aReplica, addr))
	}
	for _, o := range s.group.list {
		if o != s {
			other := s.newInstance(aSentinel, o.Addr)
			other.id = o.id
			s.others = append(s.others, other)
		}
	}
}

func (s *sentinel) newInstance(kind kindOf, addr string) *instance {
	i := &instance{kind: kind, addr: addr}
	s.refresh(i)
	return i
}

// refresh resets i to the state of a new instance.
func (s *sentinel) refresh(i *instance) {
	now := s.Millis()
	*i = instance{kind: i.kind, addr: i.addr, id: i.id, role: i.kind, priority: 100, configEpoch: i.configEpoch,
		leaderEpoch: i.leaderEpoch, actPing: now, lastPong: now, lastAvail: now, roleAt: now, confAt: now}
}

// Start starts the process. Epochs, votes and known instances are kept.
func (s *sentinel) Start() {
	s.server = engine.New(s.engineConfig())
	s.events = s.server.Open("events", func([]byte) {})
	s.events.Trust()
	s.dirty, s.owed, s.tilt = nil, nil, 0
	if s.master == nil {
		s.initialize()
	}
	for _, i := range s.all() {
		s.refresh(i)
	}
	s.previous = s.Millis()
	s.After(1, s.timer)
}

func (s *sentinel) Stop() {
	s.server, s.events, s.dirty = nil, nil, nil
	for _, i := range s.all() {
		i.wire = nil
	}
}

// all is every instance, in the order in which the timer handles them.
func (s *sentinel) all() []*instance {
	list := []*instance{s.master}
	list = append(list, s.replicas...)
	return append(list, s.others...)
}

// timer is sentinelTimer.
func (s *sentinel) timer() {
	now := s.Millis()
	if delta := now - s.previous; delta < 0 || delta > tiltTrigger {
		s.tilt = now
		s.event("+tilt", nil)
	}
	s.previous = now
	for _, i := range s.all() {
		s.handle(i)
	}
	if s.master.state == updateConfig {
		s.switchMaster(s.master.winner.addr)
	}
	s.done()
	next := fastestTimer + s.rng.Int64N(slowestTimer-fastestTimer+1)
	s.After(next*int64(time.Millisecond), s.timer)
}

func (s *sentinel) handle(i *instance) {
	s.reconnect(i)
	s.talk(i)
	if s.tilt != 0 {
		if s.Millis()-s.tilt < tiltPeriod {
			return
		}
		s.tilt = 0
		s.event("-tilt", nil)
	}
	s.checkSubjectively(i)
	if i.kind != aMaster {
		return
	}
	s.checkObjectively(i)
	if s.startIfNeeded(i) {
		s.askOthers(i, true)
	}
	s.advance(i)
	s.askOthers(i, false)
}

// checkSubjectively is sentinelCheckSubjectivelyDown.
func (s *sentinel) checkSubjectively(i *instance) {
	now, silent := s.Millis(), int64(0)
	down := s.downAfter()
	switch {
	case i.actPing != 0:
		silent = now - i.actPing
	case i.wire == nil || !i.wire.up:
		silent = now - i.lastAvail
	}
	if i.wire != nil && now-i.wire.since > minLinkReconnect && i.actPing != 0 &&
		now-i.actPing > down/2 && now-i.lastPong > down/2 {
		i.wire.close()
	}
	demoted := i.kind == aMaster && i.role == aReplica && now-i.roleAt > down+infoPeriod*2
	s.mark(i, "sdown", silent > down || demoted, &i.sdown, &i.sdownSince)
}

// mark changes whether an instance is down, and publishes the change.
func (s *sentinel) mark(i *instance, event string, is bool, down *bool, since *int64) {
	switch {
	case is && !*down:
		*down, *since = true, s.Millis()
		s.event("+"+event, i)
	case !is && *down:
		*down = false
		s.event("-"+event, i)
	}
}

// checkObjectively is sentinelCheckObjectivelyDown.
func (s *sentinel) checkObjectively(m *instance) {
	count := 0
	if m.sdown {
		count = 1
		for _, o := range s.others {
			if o.saysDown {
				count++
			}
		}
	}
	s.mark(m, "odown", count >= s.config.Quorum, &m.odown, &m.odownSince)
}

// downAfter is down-after-milliseconds.
func (s *sentinel) downAfter() int64 { return s.config.DownAfter.Milliseconds() }

// noDownFor reports whether i was not down in the last ms milliseconds (sentinelRedisInstanceNoDownFor).
func (s *sentinel) noDownFor(i *instance, ms int64) bool {
	last := max(i.sdownSince, i.odownSince)
	return !i.sdown && !i.odown && (last == 0 || s.Millis()-last > ms)
}

// sane reports whether the master looks like one, so that replicas may be reconfigured to it
// (sentinelMasterLooksSane).
func (s *sentinel) sane() bool {
	m := s.master
	return m.role == aMaster && !m.sdown && !m.odown && s.Millis()-m.infoAt < infoPeriod*2
}

// currentMaster is the address that clients get.
func (s *sentinel) currentMaster() string {
	if m := s.master; m.winner != nil && m.state >= reconfReplicas {
		return m.winner.addr
	}
	return s.master.addr
}
