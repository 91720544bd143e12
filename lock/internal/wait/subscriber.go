package wait

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// subscriber keeps the subscriptions that a client's wait queues need. It is the only goroutine that subscribes,
// unsubscribes, connects and closes, so no goroutine waits for a mutex of go-redis that another one holds during I/O.
//
// There is one connection for all channels; in a cluster whose messages stay with
// the slot (SSUBSCRIBE), one for each master that has any.
type subscriber struct {
	queues  *Queues
	conns   map[string]*subConn // by the address of the master; empty: for messages that go to all nodes
	retries map[string]*redial  // by the same address, once a connection there has failed
}

// redial is when to connect again to an address whose connections fail.
type redial struct {
	failures int // connections in a row that lived for less than checkInterval
	due      time.Time
	refused  bool // until due, since the server refused all subscriptions: waiters poll
}

// checkInterval is how often a connection is checked: a dead host closes none.
const checkInterval = 2 * time.Second

// maxRedial is the longest delay before an address is dialed again. Waiters in a queue at the server are woken by
// messages alone: less than a second after an outage they are to be subscribed again.
const maxRedial = 800 * time.Millisecond

func (s *subscriber) run() {
	timer := time.NewTimer(checkInterval)
	defer timer.Stop()
	defer func() {
		for _, addr := range s.addrs() {
			s.closeConn(addr)
		}
	}()
	for {
		select {
		case <-s.queues.bg.Context.Done():
			return
		case <-s.queues.changed:
		case <-timer.C:
		}
		if s.queues.order != nil { // a connection may break at this instant
			s.queues.order("", nil)
		}
		if s.queues.bg.Context.Err() != nil { // closed at the same instant
			return
		}
		s.dropBroken()
		for _, addr := range s.addrs() {
			s.check(addr)
		}
		timer.Reset(s.update())
	}
}

// dropBroken closes broken connections.
func (s *subscriber) dropBroken() {
	for _, addr := range s.addrs() {
		select {
		case <-s.conns[addr].closed:
			s.fail(addr)
		default:
		}
	}
}

// fail closes a connection that has failed, and sets when the address is dialed again: at once if it
// worked for a while, and else after delays that grow.
func (s *subscriber) fail(addr string) {
	r := s.retries[addr]
	if r == nil {
		r = &redial{}
		s.retries[addr] = r
	}
	c := s.conns[addr]
	lived := c != nil && !c.opened.IsZero() && time.Since(c.opened) >= checkInterval
	sharded := c != nil && c.sharded
	s.closeConn(addr)
	r.refused = false
	if lived {
		r.failures = 0
	}
	if r.failures > 0 || sharded { // of a cluster, the slots are being looked up: a short wait saves requests
		d := min(100*time.Millisecond<<min(r.failures, 10), maxRedial)
		r.due = time.Now().Add(s.queues.random.Between(d/5, d))
	}
	r.failures++
}

func (s *subscriber) addrs() []string { return slices.Sorted(maps.Keys(s.conns)) }

// update subscribes to the wanted channels only, and returns when to look again.
func (s *subscriber) update() time.Duration {
	ctx, cancel := context.WithTimeout(s.queues.bg.Context, s.queues.timeout)
	defer cancel()
	now := time.Now()
	wanted, err := s.queues.wantedAt(ctx, now)
	for _, addr := range s.addrs() {
		if len(wanted[addr]) == 0 {
			s.abandon(addr, now)
		}
	}
	if len(wanted) == 0 && err == nil {
		return time.Hour // the next waiter wakes the subscriber
	}
	next := now.Add(checkInterval)
	if err != nil {
		next = now.Add(s.queues.random.Between(20*time.Millisecond, 100*time.Millisecond))
	}
	for _, addr := range slices.Sorted(maps.Keys(wanted)) {
		r := s.retries[addr]
		if s.conns[addr] == nil && r != nil && now.Before(r.due) {
			if r.refused {
				s.queues.pollUntil(wanted[addr], r.due)
			}
			next = earlier(next, r.due)
			continue
		}
		if s.updateConn(ctx, addr, wanted[addr]) != nil {
			s.fail(addr)
			next = earlier(next, s.retries[addr].due)
			continue
		}
		next = earlier(next, s.conns[addr].checked.Add(checkInterval))
	}
	return time.Until(next)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// abandon closes a connection that is no longer needed. If all that it was asked for was
// refused, no other channel is tried for a while, and the waiters of all channels poll.
func (s *subscriber) abandon(addr string, now time.Time) {
	if s.conns[addr].onlyRefused() {
		s.retries[addr] = &redial{due: now.Add(refusedFor), refused: true}
	}
	s.closeConn(addr)
}

// updateConn connects if need be, unsubscribes unwanted channels, and subscribes new ones.
func (s *subscriber) updateConn(ctx context.Context, addr string, wanted map[string]bool) error {
	c := s.conns[addr]
	if c == nil {
		return s.dial(ctx, addr, wanted)
	}
	for _, channel := range c.takeRefused() {
		delete(c.channels, channel)
	}
	ctx = neverDial(ctx)
	added, removed := missing(wanted, c.channels), missing(c.channels, wanted)
	c.channels = wanted
	if len(removed) > 0 {
		unsubscribe := c.pubsub.Unsubscribe
		if c.sharded {
			unsubscribe = c.pubsub.SUnsubscribe
		}
		for _, channel := range removed {
			if err := unsubscribe(ctx, channel); err != nil {
				return err
			}
		}
	}
	return c.subscribe(ctx, added)
}

func (s *subscriber) dial(ctx context.Context, addr string, wanted map[string]bool) error {
	pubsub, err := s.queues.open(ctx, addr, wanted)
	if err != nil {
		return err
	}
	c := &subConn{pubsub: pubsub, sharded: addr != "", channels: wanted, closed: make(chan struct{})}
	s.conns[addr] = c
	if err := c.subscribe(ctx, missing(wanted, nil)); err != nil {
		close(c.closed) // there is no reader
		return err
	}
	c.opened = time.Now()
	c.checked = c.opened
	if !s.queues.bg.Start(func() { s.read(c) }) {
		close(c.closed)
		return errClosed
	}
	return nil
}

// errClosed is the error of a connection that is not used, because the client was closed.
var errClosed = errors.New("the lock client is closed")

// missing are the keys of a that b has not, sorted.
func missing(a, b map[string]bool) []string {
	var out []string
	for name := range a {
		if _, ok := b[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// read wakes waiters until the connection breaks, or a master gives up a slot of
// which a channel is wanted.
func (s *subscriber) read(c *subConn) {
	defer s.queues.notifySubscriber()
	defer close(c.closed)
	ctx := neverDial(context.Background())
	for {
		got, err := c.pubsub.Receive(ctx)
		if channel, refused := c.refusal(err); refused {
			if c.sharded && !redis.HasErrorPrefix(err, "NOPERM") { // no such command
				s.queues.unsharded.Store(true)
			} else {
				s.queues.refused(channel, err)
			}
			s.queues.notifySubscriber()
			continue
		}
		if err != nil {
			return
		}
		c.heard.Store(true)
		switch m := got.(type) {
		case *redis.Message:
			s.queues.message(m.Channel, m.Payload)
		case *redis.Subscription:
			switch {
			case m.Kind == "subscribe" || m.Kind == "ssubscribe":
				c.confirm(m.Channel)
				s.queues.confirmed(m.Channel)
			case m.Kind == "sunsubscribe" && s.queues.wants(m.Channel):
				return
			}
		}
	}
}

// neverDial is ctx for a connection that exists: since it has ended, go-redis reads and writes as usual, until its
// deadline, but does not dial again if that fails. It would do so under a mutex that others need; the subscriber dials.
func neverDial(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// check closes a connection on which nothing was heard since the last ping, and else pings the server, if the last
// check was checkInterval ago: the wanted channels may change more often than that.
func (s *subscriber) check(addr string) {
	c := s.conns[addr]
	if time.Since(c.checked) < checkInterval {
		return
	}
	c.checked = time.Now()
	heard := c.heard.Swap(false)
	if c.pinged && !heard {
		s.fail(addr)
		return
	}
	ctx, cancel := context.WithTimeout(s.queues.bg.Context, s.queues.timeout)
	defer cancel()
	c.pinged = true
	if c.pubsub.Ping(neverDial(ctx)) != nil {
		s.fail(addr)
	}
}

// closeConn closes a connection, if it exists, and waits for its reader.
func (s *subscriber) closeConn(addr string) {
	c := s.conns[addr]
	if c == nil {
		return
	}
	_ = c.pubsub.Close() // it is given up in any case
	<-c.closed
	delete(s.conns, addr)
	if c.sharded {
		s.queues.cluster.ReloadState(s.queues.bg.Context) // the slots may have moved
	}
	s.queues.broken(c.channels)
}
