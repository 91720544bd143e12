package network

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/resp"
)

// MasterAddr is a virtual address: [Actor.Dial] queries the Sentinels for the master and connects to it. It also
// subscribes to +switch-master at a Sentinel and closes the connections to a former master. go-redis' failover
// client does the same, but cannot run in a bubble, because it queries Sentinels while it holds mutexes.
const MasterAddr = "10.3.0.1:6379"

// queryTimeout is how long Sentinels may take to return the master's address.
const queryTimeout = 2 * time.Second

// SentinelAccess is how clients ask the Sentinels for the master.
type SentinelAccess struct {
	Hosts    []*Host
	Master   string // its name
	Password string // empty: none
}

// masterFollower is the state with which an actor follows the master.
type masterFollower struct {
	made         []*socket           // connections made through masterAddr
	subscription *masterSubscription // nil: not subscribed
	tried        int
	waiting      bool // for the next attempt
}

// dialMaster is Dial of masterAddr. The world is locked.
func (a *Actor) dialMaster(ctx context.Context, network string) (net.Conn, error) {
	addr, err := a.queryMaster(ctx)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: text(MasterAddr), Err: err}
	}
	s, err := a.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	f := &a.follower
	f.made = append(f.made, s)
	if f.subscription == nil && !f.waiting {
		a.subscribeSwitchMaster()
	}
	return s, nil
}

var errNoSentinel = errors.New("no Sentinel returned the address of the master")

// queryMaster queries all Sentinels at once; the first reply counts.
func (a *Actor) queryMaster(ctx context.Context) (string, error) {
	w := a.world
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	q := &masterQuery{actor: a, left: len(w.Sentinels.Hosts)}
	q.changed.init(w)
	var conns []*Conn
	for _, h := range w.Sentinels.Hosts {
		conns = append(conns, a.connect(h, q))
		conns[len(conns)-1].Send(Forward, w.Sentinels.command("SENTINEL", "get-master-addr-by-name", w.Sentinels.Master))
	}
	stop := q.wakeAfter(ctx)
	defer stop()
	for q.addr == "" && q.left > 0 && ctx.Err() == nil && !w.Closed {
		w.wait(&q.changed)
	}
	a.awaitThaw(a.slot)
	for _, c := range conns {
		c.Die(Forward)
	}
	switch {
	case q.addr != "":
		return q.addr, nil
	case ctx.Err() != nil:
		return "", os.ErrDeadlineExceeded
	}
	return "", errNoSentinel
}

// connect opens one more connection of the actor to h.
func (a *Actor) connect(h *Host, near End) *Conn {
	k := a.dials[h]
	a.dials[h]++
	slot := a.slot
	if !a.narrow {
		slot = a.world.Slots.connection(a.slot, h.Index, k)
	}
	c := a.world.Connect(a.name, h, near, slot, k)
	c.Source = a.addr(h, k)
	return c
}

// command is a command to a Sentinel, with AUTH before it if the Sentinels have a password.
func (s *SentinelAccess) command(words ...string) Segment {
	var p []byte
	if s.Password != "" {
		p = resp.AppendStrings(p, "AUTH", s.Password)
	}
	p = resp.AppendStrings(p, words...)
	return Segment{Data: p, Size: int64(len(p))}
}

// masterQuery is the client's end of the connections that query the Sentinels.
type masterQuery struct {
	actor   *Actor
	changed sleeper
	left    int
	addr    string
}

func (q *masterQuery) wakeAfter(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() {
		q.changed.cond.L.Lock()
		defer q.changed.cond.L.Unlock()
		q.actor.world.wake(&q.changed)
	})
}

func (q *masterQuery) Ready() (*Waiters, int64) { return q.actor.Ready() }

func (q *masterQuery) Receive(seg Segment) {
	if seg.Kind != payload {
		return
	}
	replies, _ := resp.ParseAll(seg.Data)
	for _, reply := range replies { // the first reply may be AUTH's
		if words, ok := reply.([]any); ok && len(words) == 2 && q.addr == "" {
			q.addr = words[0].(string) + ":" + words[1].(string)
		}
	}
	q.actor.world.wake(&q.changed)
}

func (q *masterQuery) Broken(error) {
	q.left--
	q.actor.world.wake(&q.changed)
}

// masterSubscription is the client's end of a subscription at a Sentinel. It needs no goroutine: messages are
// delivered by receive.
type masterSubscription struct {
	actor *Actor
	conn  *Conn
	buf   []byte
}

// resubscribeDelay is how long it takes until another Sentinel is tried.
const resubscribeDelay = int64(100 * time.Millisecond)

// subscribeSwitchMaster subscribes at the next Sentinel in turn.
func (a *Actor) subscribeSwitchMaster() {
	f := &a.follower
	f.waiting = false
	all := &a.world.Sentinels
	h := all.Hosts[f.tried%len(all.Hosts)]
	f.tried++
	f.subscription = &masterSubscription{actor: a}
	f.subscription.conn = a.connect(h, f.subscription)
	f.subscription.conn.Send(Forward, all.command("SUBSCRIBE", "+switch-master"))
}

func (e *masterSubscription) Ready() (*Waiters, int64) { return e.actor.Ready() }

func (e *masterSubscription) Receive(seg Segment) {
	replies, rest := resp.ParseAll(append(e.buf, seg.Data...))
	e.buf = rest
	for _, reply := range replies {
		if words, ok := reply.([]any); ok && len(words) == 3 && words[0] == "message" {
			e.switched(words[2].(string))
		}
	}
}

// switched closes the connections to a former master; the text is "name oldip oldport newip newport".
func (e *masterSubscription) switched(text string) {
	words := strings.Fields(text)
	if len(words) != 5 || words[0] != e.actor.world.Sentinels.Master {
		return
	}
	f := &e.actor.follower
	var kept []*socket
	for _, s := range f.made {
		switch {
		case s.closed || s.err != nil:
		case s.remote.String() == words[3]+":"+words[4]:
			kept = append(kept, s)
		default:
			s.conn.Die(Forward)
			s.Broken(syscall.ECONNABORTED)
		}
	}
	f.made = kept
}

func (e *masterSubscription) Broken(error) {
	a := e.actor
	f := &a.follower
	if f.subscription != e {
		return
	}
	f.subscription, f.waiting = nil, true
	w := a.world
	w.at(w.Slots.snap(w.Now()+resubscribeDelay, a.slot), rank(a.slot, Back), call(func() {
		if f.waiting {
			a.subscribeSwitchMaster()
		}
	}))
}
