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
type keeper struct {
	signals *signals
	lines   map[string]*line // by the address of the master; empty: for messages that go everywhere
}

// line is one connection and what is subscribed on it.
type line struct {
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

func (k *keeper) run() {
	timer := time.NewTimer(check)
	defer timer.Stop()
	defer func() {
		for at := range k.lines {
			k.hangUp(at)
		}
	}()
	for {
		select {
		case <-k.signals.bg.ctx.Done():
			return
		case <-k.signals.changed:
			if k.clear() {
				// Who has the slots now is being found out: not to ask at once is to ask less often.
				timer.Reset(k.signals.random.between(20*time.Millisecond, 100*time.Millisecond))
				continue
			}
		case <-timer.C:
			for _, at := range k.places() {
				k.check(at)
			}
		}
		timer.Reset(k.serve())
	}
}

// clear hangs up what has broken, and says whether a cluster's master was among it.
func (k *keeper) clear() (shard bool) {
	for _, at := range k.places() {
		if l := k.lines[at]; isOver(l.dead) {
			shard = shard || l.sharded
			k.hangUp(at)
		}
	}
	return shard
}

// places are where there are lines, in the same order each time.
func (k *keeper) places() []string {
	out := make([]string, 0, len(k.lines))
	for at := range k.lines {
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
func (k *keeper) serve() time.Duration {
	ctx, cancel := context.WithTimeout(k.signals.bg.ctx, k.signals.timeout)
	defer cancel()
	wanted, err := k.signals.wantedAt(ctx, time.Now())
	for _, at := range k.places() {
		if len(wanted[at]) == 0 {
			k.hangUp(at)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(wanted)) {
		names := wanted[at]
		var failed error
		if k.lines[at] == nil {
			failed = k.dial(ctx, at, names)
		} else {
			failed = k.change(ctx, k.lines[at], names)
		}
		if failed != nil {
			k.hangUp(at)
			err = failed
		}
	}
	switch {
	case err != nil:
		return k.signals.random.between(20*time.Millisecond, 100*time.Millisecond)
	case len(wanted) == 0:
		return time.Hour // a waiter who comes will say so
	}
	return check
}

func (k *keeper) dial(ctx context.Context, at string, wanted map[string]bool) error {
	pubsub, err := k.signals.open(ctx, at, wanted)
	if err != nil {
		return err
	}
	l := &line{
		pubsub: pubsub, sharded: at != "", subscribed: wanted, dead: make(chan struct{}), checked: time.Now(),
	}
	k.lines[at] = l
	if err := l.subscribe(ctx, wanted); err != nil {
		close(l.dead) // nobody reads it
		return err
	}
	if !k.signals.bg.start(func() { k.read(l) }) {
		close(l.dead)
		return ErrClosed
	}
	return nil
}

// subscribe asks for channels; those of a cluster's slots one by one, for one
// request may name those of one slot alone.
func (l *line) subscribe(ctx context.Context, set map[string]bool) error {
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

func (l *line) unsubscribe(ctx context.Context, set map[string]bool) error {
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
func (k *keeper) change(ctx context.Context, l *line, wanted map[string]bool) error {
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
func (k *keeper) read(l *line) {
	defer k.signals.poke()
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
			k.signals.message(m.Channel, m.Payload)
		case *redis.Subscription:
			switch {
			case m.Kind == "subscribe" || m.Kind == "ssubscribe":
				k.signals.confirmed(m.Channel)
			case m.Kind == "sunsubscribe" && k.signals.wants(m.Channel):
				return
			}
		}
	}
}

// check hangs up on a server from which nothing was heard since it was last
// asked, and asks again: a dead host closes no connection.
func (k *keeper) check(at string) {
	l := k.lines[at]
	if time.Since(l.checked) < check/2 {
		return // the timer was set for another reason
	}
	l.checked = time.Now()
	heard := l.heard.Swap(false)
	if l.asked && !heard {
		k.hangUp(at)
		return
	}
	ctx, cancel := context.WithTimeout(k.signals.bg.ctx, k.signals.timeout)
	defer cancel()
	l.asked = true
	if l.pubsub.Ping(ctx) != nil {
		k.hangUp(at)
	}
}

// hangUp closes a connection, if it is there, and waits for its reader.
func (k *keeper) hangUp(at string) {
	l := k.lines[at]
	if l == nil {
		return
	}
	_ = l.pubsub.Close() // there is nobody to tell
	<-l.dead
	delete(k.lines, at)
	if l.sharded {
		k.signals.cluster.ReloadState(k.signals.bg.ctx) // the slots may have gone elsewhere
	}
	k.signals.broken(l.subscribed)
}

func names(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for name := range set {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
