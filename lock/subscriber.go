package lock

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// subscriber keeps the subscriptions of a client as its wait queues want them. It
// is the only goroutine that subscribes, unsubscribes, connects and closes, so that
// none waits for a mutex of go-redis under which another does I/O.
//
// There is one connection for all channels; in a cluster whose messages stay with
// the slot (SSUBSCRIBE), one for each master that has any.
type subscriber struct {
	queues *waitQueues
	conns  map[string]*subConn // by the address of the master; empty: for messages that go to all nodes
}

// subConn is one connection and what is subscribed on it.
type subConn struct {
	pubsub   *redis.PubSub
	sharded  bool
	channels map[string]bool
	closed   chan struct{} // when reading has failed
	heard    atomic.Bool   // something was read since the last check
	pinged   bool          // at the last check
	checked  time.Time
}

// checkInterval is how often a connection is checked: a dead host closes none.
const checkInterval = 2 * time.Second

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
		case <-s.queues.bg.ctx.Done():
			return
		case <-s.queues.changed:
			if s.dropBroken() {
				// The slots are being looked up: a short wait saves requests.
				timer.Reset(s.queues.random.between(20*time.Millisecond, 100*time.Millisecond))
				continue
			}
		case <-timer.C:
			for _, addr := range s.addrs() {
				s.check(addr)
			}
		}
		timer.Reset(s.update())
	}
}

// dropBroken closes broken connections, and reports whether one was to a cluster's master.
func (s *subscriber) dropBroken() (sharded bool) {
	for _, addr := range s.addrs() {
		c := s.conns[addr]
		select {
		case <-c.closed:
			sharded = sharded || c.sharded
			s.closeConn(addr)
		default:
		}
	}
	return sharded
}

func (s *subscriber) addrs() []string { return slices.Sorted(maps.Keys(s.conns)) }

// update makes the subscriptions what is wanted and returns when to look again.
func (s *subscriber) update() time.Duration {
	ctx, cancel := context.WithTimeout(s.queues.bg.ctx, s.queues.timeout)
	defer cancel()
	wanted, err := s.queues.wantedAt(ctx, time.Now())
	for _, addr := range s.addrs() {
		if len(wanted[addr]) == 0 {
			s.closeConn(addr)
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(wanted)) {
		if failed := s.updateConn(ctx, addr, wanted[addr]); failed != nil {
			s.closeConn(addr)
			err = failed
		}
	}
	switch {
	case err != nil:
		return s.queues.random.between(20*time.Millisecond, 100*time.Millisecond)
	case len(wanted) == 0:
		return time.Hour // the next waiter wakes the subscriber
	}
	return checkInterval
}

// updateConn connects if need be, unsubscribes what is no longer wanted and
// subscribes what is new.
func (s *subscriber) updateConn(ctx context.Context, addr string, wanted map[string]bool) error {
	c := s.conns[addr]
	if c == nil {
		return s.dial(ctx, addr, wanted)
	}
	added, removed := missing(wanted, c.channels), missing(c.channels, wanted)
	c.channels = wanted
	if len(removed) > 0 {
		unsubscribe := c.pubsub.Unsubscribe
		if c.sharded {
			unsubscribe = c.pubsub.SUnsubscribe
		}
		if err := c.eachSlot(removed, func(some ...string) error { return unsubscribe(ctx, some...) }); err != nil {
			return err
		}
	}
	return c.subscribe(ctx, added)
}

func (s *subscriber) dial(ctx context.Context, addr string, wanted map[string]bool) error {
	pubsub, err := s.queues.open(ctx, addr, wanted)
	if err != nil {
		return err
	}
	c := &subConn{
		pubsub: pubsub, sharded: addr != "", channels: wanted, closed: make(chan struct{}), checked: time.Now(),
	}
	s.conns[addr] = c
	if err := c.subscribe(ctx, missing(wanted, nil)); err != nil {
		close(c.closed) // there is no reader
		return err
	}
	if !s.queues.bg.start(func() { s.read(c) }) {
		close(c.closed)
		return ErrClosed
	}
	return nil
}

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

func (c *subConn) subscribe(ctx context.Context, channels []string) error {
	if len(channels) == 0 {
		return nil
	}
	subscribe := c.pubsub.Subscribe
	if c.sharded {
		subscribe = c.pubsub.SSubscribe
	}
	return c.eachSlot(channels, func(some ...string) error { return subscribe(ctx, some...) })
}

// eachSlot calls f once with all channels, or, in a cluster, with each: a request
// may name those of one slot only.
func (c *subConn) eachSlot(channels []string, f func(channels ...string) error) error {
	if !c.sharded {
		return f(channels...)
	}
	for _, channel := range channels {
		if err := f(channel); err != nil {
			return err
		}
	}
	return nil
}

// read wakes waiters until the connection breaks, or a master gives up a slot of
// which a channel is wanted.
func (s *subscriber) read(c *subConn) {
	defer s.queues.notifySubscriber()
	defer close(c.closed)
	// With a context that has ended, go-redis reads as usual but does not reconnect
	// by itself, under its mutex: that is done by the subscriber.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		got, err := c.pubsub.Receive(ctx)
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
				s.queues.confirmed(m.Channel)
			case m.Kind == "sunsubscribe" && s.queues.wants(m.Channel):
				return
			}
		}
	}
}

// check closes a connection on which nothing was heard since the last ping, and
// else pings the server.
func (s *subscriber) check(addr string) {
	c := s.conns[addr]
	if time.Since(c.checked) < checkInterval/2 {
		return // the timer was set for another reason
	}
	c.checked = time.Now()
	heard := c.heard.Swap(false)
	if c.pinged && !heard {
		s.closeConn(addr)
		return
	}
	ctx, cancel := context.WithTimeout(s.queues.bg.ctx, s.queues.timeout)
	defer cancel()
	c.pinged = true
	if c.pubsub.Ping(ctx) != nil {
		s.closeConn(addr)
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
		s.queues.cluster.ReloadState(s.queues.bg.ctx) // the slots may have moved
	}
	s.queues.broken(c.channels)
}
