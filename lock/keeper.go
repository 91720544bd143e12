package lock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// keeper keeps the one subscription of a client as its waiters want it. It is
// the only goroutine that subscribes, unsubscribes, connects and closes, so
// that nobody ever waits for a mutex of go-redis while another is talking to
// the server under it.
type keeper struct {
	signals *signals
	line    *line // nil: there is no connection
}

// line is one connection and what is subscribed on it.
type line struct {
	pubsub     *redis.PubSub
	subscribed map[string]bool
	dead       chan struct{} // closed when reading has failed
	heard      atomic.Bool   // something was read since the last check
	asked      bool          // a ping was sent at the last check
}

// check is how often a connection is asked whether it still lives.
const check = 2 * time.Second

func (k *keeper) run() {
	timer := time.NewTimer(check)
	defer timer.Stop()
	defer k.hangUp()
	for {
		var dead chan struct{}
		if k.line != nil {
			dead = k.line.dead
		}
		select {
		case <-k.signals.bg.ctx.Done():
			return
		case <-k.signals.changed:
		case <-dead:
			k.hangUp()
		case <-timer.C:
			k.check()
		}
		timer.Reset(k.serve())
	}
}

// serve makes the subscription what is wanted and says when to look again.
func (k *keeper) serve() time.Duration {
	wanted := k.signals.wanted(time.Now())
	if len(wanted) == 0 {
		k.hangUp()
		return time.Hour // a waiter who comes will say so
	}
	ctx, cancel := context.WithTimeout(k.signals.bg.ctx, k.signals.timeout)
	defer cancel()
	var err error
	if k.line == nil {
		err = k.dial(ctx, wanted)
	} else {
		err = k.change(ctx, wanted)
	}
	if err != nil {
		k.hangUp()
		return k.signals.random.between(20*time.Millisecond, 100*time.Millisecond)
	}
	return check
}

func (k *keeper) dial(ctx context.Context, wanted map[string]bool) error {
	k.line = &line{pubsub: k.signals.rdb.Subscribe(ctx), subscribed: wanted, dead: make(chan struct{})}
	if err := k.line.pubsub.Subscribe(ctx, names(wanted)...); err != nil {
		close(k.line.dead) // nobody reads it
		return err
	}
	l := k.line
	if !k.signals.bg.start(func() { k.read(l) }) {
		close(l.dead)
		return ErrClosed
	}
	return nil
}

// change subscribes what is missing and unsubscribes what is too much.
func (k *keeper) change(ctx context.Context, wanted map[string]bool) error {
	more, less := map[string]bool{}, map[string]bool{}
	for name := range wanted {
		if !k.line.subscribed[name] {
			more[name] = true
		}
	}
	for name := range k.line.subscribed {
		if !wanted[name] {
			less[name] = true
		}
	}
	k.line.subscribed = wanted
	if len(less) > 0 {
		if err := k.line.pubsub.Unsubscribe(ctx, names(less)...); err != nil {
			return err
		}
	}
	if len(more) > 0 {
		return k.line.pubsub.Subscribe(ctx, names(more)...)
	}
	return nil
}

// read tells waiters what the server says, until the connection breaks.
func (k *keeper) read(l *line) {
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
			if m.Kind == "subscribe" {
				k.signals.confirmed(m.Channel)
			}
		}
	}
}

// check hangs up on a server from which nothing was heard since it was last
// asked, and asks again: a dead host closes no connection.
func (k *keeper) check() {
	if k.line == nil {
		return
	}
	heard := k.line.heard.Swap(false)
	if k.line.asked && !heard {
		k.hangUp()
		return
	}
	ctx, cancel := context.WithTimeout(k.signals.bg.ctx, k.signals.timeout)
	defer cancel()
	k.line.asked = true
	if k.line.pubsub.Ping(ctx) != nil {
		k.hangUp()
	}
}

// hangUp closes the connection, if there is one, and waits for its reader.
func (k *keeper) hangUp() {
	if k.line == nil {
		return
	}
	_ = k.line.pubsub.Close() // there is nobody to tell
	<-k.line.dead
	k.line = nil
	k.signals.broken()
}

func names(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for name := range set {
		out = append(out, name)
	}
	return out
}
