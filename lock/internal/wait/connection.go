package wait

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// subConn is one connection and its subscriptions.
type subConn struct {
	pubsub   *redis.PubSub
	sharded  bool
	channels map[string]bool
	closed   chan struct{} // when reading has failed
	heard    atomic.Bool   // something was read since the last check
	pinged   bool          // at the last check
	opened   time.Time
	checked  time.Time

	mu        sync.Mutex
	pending   []string // channels that were asked for and not replied to, in order
	denied    []string // channels that were refused since the last update
	refusals  int
	confirmed bool // at least one channel was not refused
}

// subscribe sends one command for each channel, so that each has a reply of its own; in a cluster, a command could name
// channels of one slot only.
func (c *subConn) subscribe(ctx context.Context, channels []string) error {
	subscribe := c.pubsub.Subscribe
	if c.sharded {
		subscribe = c.pubsub.SSubscribe
	}
	c.mu.Lock()
	c.pending = append(c.pending, channels...)
	c.mu.Unlock()
	for _, channel := range channels {
		if err := subscribe(ctx, channel); err != nil {
			return err
		}
	}
	return nil
}

// confirm is called when the server has subscribed a channel.
func (c *subConn) confirm(channel string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confirmed = true
	if i := slices.Index(c.pending, channel); i >= 0 {
		c.pending = slices.Delete(c.pending, i, i+1)
	}
}

// refusal reports whether err, read from the server, refuses a subscription for good, and of which
// channel: replies come in the order of the commands.
func (c *subConn) refusal(err error) (channel string, refused bool) {
	if err == nil || !redis.HasErrorPrefix(err, "NOPERM") && !strings.Contains(err.Error(), "unknown command") {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return "", false
	}
	channel = c.pending[0]
	c.pending = c.pending[1:]
	c.denied = append(c.denied, channel)
	c.refusals++
	return channel, true
}

// takeRefused are the channels that were refused since it was last called.
func (c *subConn) takeRefused() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	channels := c.denied
	c.denied = nil
	return channels
}

// onlyRefused reports whether every channel that was replied to was refused.
func (c *subConn) onlyRefused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusals > 0 && !c.confirmed
}
