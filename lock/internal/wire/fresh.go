package wire

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DoFresh is [Node.DoAll] for calls to one master, over a new connection. The existing connections may all have gone
// silent, as when a firewall forgets them, and go-redis waits for a reply on each until its read timeout. DoFresh
// returns when ctx ends; a dialer that ignores ctx, such as the TLS dialer of go-redis, may take longer, and Close
// waits for it. The hooks of a *redis.Client do not apply.
func (n *Node) DoFresh(ctx context.Context, calls []Call) []Answer {
	var rdb *redis.Client
	if n.cluster != nil {
		master, err := n.cluster.MasterForKey(ctx, calls[0].Key())
		if err != nil {
			return n.DoAll(ctx, calls)
		}
		rdb = n.cluster.Options().NewClient(brief(ctx, master))
	} else if one, ok := n.Redis.(*redis.Client); ok {
		rdb = redis.NewClient(brief(ctx, one))
	} else {
		return n.DoAll(ctx, calls)
	}
	if n.order != nil {
		n.pipesFor(calls[0].Key()).plain.waitForTurn(calls[0])
	}
	replied := make(chan []Answer, 1)
	started := n.bg.Start(func() {
		defer rdb.Close()
		replied <- sendAll(ctx, rdb, calls, false)
	})
	if !started {
		_ = rdb.Close()
		return n.DoAll(ctx, calls) // refused
	}
	out := make([]Answer, len(calls))
	select {
	case out = <-replied:
	case <-ctx.Done():
		for i := range out {
			out[i].Err = &Error{Outcome: Unknown, Err: fmt.Errorf("no reply yet: %w", context.Cause(ctx))}
		}
	}
	for i, a := range out {
		out[i] = n.Judged(a)
	}
	return out
}

// brief are the options of c, changed for a connection that is made before ctx ends.
func brief(ctx context.Context, c *redis.Client) *redis.Options {
	o := optionsLike(c)
	o.DialerRetries = 1
	if end, ends := ctx.Deadline(); ends {
		o.DialTimeout = max(min(o.DialTimeout, time.Until(end)), time.Millisecond)
	}
	return o
}

// optionsLike are the options for a client of a few connections to the server of c, whose reads end with their context.
// In the options of a client 0 means no timeout or no retries, in the options for a new one the default.
func optionsLike(c *redis.Client) *redis.Options {
	o := *c.Options()
	o.MinIdleConns, o.MaxIdleConns, o.ContextTimeoutEnabled = 0, 1, true
	// These belong to c alone; a second client that registers its handlers at the same processor panics.
	o.PushNotificationProcessor, o.ClientSideCache, o.ClientSideCacheConfig = nil, nil, nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	for _, limit := range []*time.Duration{&o.ReadTimeout, &o.WriteTimeout} {
		if *limit == 0 {
			*limit = -1
		}
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = -1
	}
	return &o
}
