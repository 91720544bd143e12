package lock

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// keeper keeps the subscriptions of a client as its waiters want them. It is
// the only goroutine that subscribes, unsubscribes, connects and closes, so
// that nobody ever waits for a mutex of go-redis while another is talking to
// the server under it.
//
// There is one connection for all channels; in a cluster whose messages stay
// with the slot (SSUBSCRIBE), one for each master that has any.
type subscriber struct {
	queues *waitQueues
	conns  map[string]*subConn // by the address of the master; empty: for messages that go everywhere
}

// line is one connection and what is subscribed on it.
type subConn struct {
	pubsub     *redis.PubSub
	sharded    bool
	subscribed map[string]bool
	dead       chan struct{} // closed when reading has failed
	heard      atomic.Bool   // something was read since the last check
	asked      bool          // a ping was sent at the last check
	checked    time.Time
}

// check is how often a connection is asked whether it still lives.
const check = 2 * time.Second

func (k *subscriber) run() {
	timer := time.NewTimer(check)
	defer timer.Stop()
	defer func() {
		for at := range k.conns {
			k.closeConn(at)
		}
	}()
	for {
		select {
		case <-k.queues.bg.ctx.Done():
			return
		case <-k.queues.wakeSubscriber:
			if k.dropBroken() {
				// Who has the slots now is being found out: not to ask at once is to ask less often.
				timer.Reset(k.queues.random.between(20*time.Millisecond, 100*time.Millisecond))
				continue
			}
		case <-timer.C:
			for _, at := range k.addrs() {
				k.check(at)
			}
		}
		timer.Reset(k.serve())
	}
}

// clear hangs up what has broken, and says whether a cluster's master was among it.
func (k *subscriber) dropBroken() (shard bool) {
	for _, at := range k.addrs() {
		if l := k.conns[at]; isOver(l.dead) {
			shard = shard || l.sharded
			k.closeConn(at)
		}
	}
	return shard
}

// places are where there are lines, in the same order each time.
func (k *subscriber) addrs() []string {
	out := make([]string, 0, len(k.conns))
	for at := range k.conns {
		out = append(out, at)
	}
	slices.Sort(out)
	return out
}

func isOver(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// serve makes the subscriptions what is wanted and says when to look again.
func (k *subscriber) serve() time.Duration {
	ctx, cancel := context.WithTimeout(k.queues.bg.ctx, k.queues.timeout)
	defer cancel()
	wanted, err := k.queues.wantedAt(ctx, time.Now())
	for _, at := range k.addrs() {
		if len(wanted[at]) == 0 {
			k.closeConn(at)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(wanted)) {
		names := wanted[at]
		var failed error
		if k.conns[at] == nil {
			failed = k.dial(ctx, at, names)
		} else {
			failed = k.change(ctx, k.conns[at], names)
		}
		if failed != nil {
			k.closeConn(at)
			err = failed
		}
	}
	switch {
	case err != nil:
		return k.queues.random.between(20*time.Millisecond, 100*time.Millisecond)
	case len(wanted) == 0:
		return time.Hour // a waiter who comes will say so
	}
	return check
}

func (k *subscriber) dial(ctx context.Context, at string, wanted map[string]bool) error {
	pubsub, err := k.queues.open(ctx, at, wanted)
	if err != nil {
		return err
	}
	l := &subConn{
		pubsub: pubsub, sharded: at != "", subscribed: wanted, dead: make(chan struct{}), checked: time.Now(),
	}
	k.conns[at] = l
	if err := l.subscribe(ctx, wanted); err != nil {
		close(l.dead) // nobody reads it
		return err
	}
	if !k.queues.bg.start(func() { k.read(l) }) {
		close(l.dead)
		return ErrClosed
	}
	return nil
}

// subscribe asks for channels; those of a cluster's slots one by one, for one
// request may name those of one slot alone.
func (l *subConn) subscribe(ctx context.Context, set map[string]bool) error {
	if !l.sharded {
		return l.pubsub.Subscribe(ctx, names(set)...)
	}
	for _, name := range names(set) {
		if err := l.pubsub.SSubscribe(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (l *subConn) unsubscribe(ctx context.Context, set map[string]bool) error {
	if !l.sharded {
		return l.pubsub.Unsubscribe(ctx, names(set)...)
	}
	for _, name := range names(set) {
		if err := l.pubsub.SUnsubscribe(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// change subscribes what is missing and unsubscribes what is too much.
func (k *subscriber) change(ctx context.Context, l *subConn, wanted map[string]bool) error {
	more, less := map[string]bool{}, map[string]bool{}
	for name := range wanted {
		if !l.subscribed[name] {
			more[name] = true
		}
	}
	for name := range l.subscribed {
		if !wanted[name] {
			less[name] = true
		}
	}
	l.subscribed = wanted
	if len(less) > 0 {
		if err := l.unsubscribe(ctx, less); err != nil {
			return err
		}
	}
	if len(more) > 0 {
		return l.subscribe(ctx, more)
	}
	return nil
}

// read tells waiters what the server says, until the connection breaks, or a
// master has to give up a slot that somebody wants to hear of.
func (k *subscriber) read(l *subConn) {
	defer k.queues.notifySubscriber()
	defer close(l.dead)
	// With a context that has ended, go-redis reads as ever but does not
	// connect again by itself, under its mutex: that is for the keeper.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		got, err := l.pubsub.Receive(ctx)
		if err != nil {
			return
		}
		l.heard.Store(true)
		switch m := got.(type) {
		case *redis.Message:
			k.queues.message(m.Channel, m.Payload)
		case *redis.Subscription:
			switch {
			case m.Kind == "subscribe" || m.Kind == "ssubscribe":
				k.queues.confirmed(m.Channel)
			case m.Kind == "sunsubscribe" && k.queues.wants(m.Channel):
				return
			}
		}
	}
}

// check hangs up on a server from which nothing was heard since it was last
// asked, and asks again: a dead host closes no connection.
func (k *subscriber) check(at string) {
	l := k.conns[at]
	if time.Since(l.checked) < check/2 {
		return // the timer was set for another reason
	}
	l.checked = time.Now()
	heard := l.heard.Swap(false)
	if l.asked && !heard {
		k.closeConn(at)
		return
	}
	ctx, cancel := context.WithTimeout(k.queues.bg.ctx, k.queues.timeout)
	defer cancel()
	l.asked = true
	if l.pubsub.Ping(ctx) != nil {
		k.closeConn(at)
	}
}

// hangUp closes a connection, if it is there, and waits for its reader.
func (k *subscriber) closeConn(at string) {
	l := k.conns[at]
	if l == nil {
		return
	}
	_ = l.pubsub.Close() // there is nobody to tell
	<-l.dead
	delete(k.conns, at)
	if l.sharded {
		k.queues.cluster.ReloadState(k.queues.bg.ctx) // the slots may have gone elsewhere
	}
	k.queues.broken(l.subscribed)
}

func names(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for name := range set {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
