package lock

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// node is one server, one master behind Sentinel, or one cluster.
type node struct {
	rdb   redis.UniversalClient
	bg    *background
	plain *pipe
	safe  *pipe // waits for replicas; nil: the client does not ask for any
}

func newNode(rdb redis.UniversalClient, bg *background, order func(string, func() string)) *node {
	n := &node{rdb: rdb, bg: bg, plain: &pipe{bg: bg, rdb: rdb, order: order, server: addresses(rdb)}}
	n.plain.send = func(ctx context.Context, calls []call) []answer { return sendAll(ctx, rdb, calls) }
	if c, ok := rdb.(*redis.Client); ok && c.Options().ContextTimeoutEnabled {
		limit := directTimeout
		if own := c.Options().ReadTimeout; own > 0 {
			limit = min(limit, own)
		}
		n.plain.brief = c.WithTimeout(limit)
	}
	return n
}

// call is one run of a script.
type call struct {
	script  script
	keys    []string
	args    []any
	command []any // the command by digest, if it was made in advance; nil: made of the above
	queued  bool  // not sent by its caller, which would not retry it after directTimeout
}

// answer is the result of a call.
type answer struct {
	value any
	err   error
}

// do sends c and returns its reply, or, as soon as ctx ends, an error of unknown outcome. All errors are
// *requestError.
func (n *node) do(ctx context.Context, c call) (any, error) { return n.through(ctx, n.plain, c) }

// doSafe is do for a script whose writes are to reach replicas, if the client asks for that.
func (n *node) doSafe(ctx context.Context, c call) (any, error) {
	if n.safe != nil {
		return n.through(ctx, n.safe, c)
	}
	return n.through(ctx, n.plain, c)
}

func (n *node) through(ctx context.Context, p *pipe, c call) (any, error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx)
	}
	if n.bg.ctx.Err() != nil {
		return nil, &requestError{rejected, ErrClosed}
	}
	a := p.do(ctx, c)
	if a.err == nil {
		return a.value, nil
	}
	if r := (*requestError)(nil); errors.As(a.err, &r) {
		return nil, r
	}
	return nil, classify(a.err)
}

// query is do for a script that belongs to no hold and must not run twice: it is
// retried a few times if it was certainly not executed.
func (c *Client) query(ctx context.Context, n *node, what call) (any, error) {
	what.queued = true
	for i := 1; ; i++ {
		value, err := n.do(ctx, what)
		if err == nil || i == tries || outcomeOf(err) != notExecuted || !c.pause(ctx, c.backoff()) {
			return value, err
		}
	}
}

// runOn is query for a lock of the one master; the reply has at least n integers.
func (c *Client) runOn(ctx context.Context, name string, what call, n int) (reply, error) {
	if !c.single {
		return reply{}, ErrOneMaster
	}
	if err := checkName(name); err != nil {
		return reply{}, err
	}
	value, err := c.query(ctx, c.node, what)
	if err != nil {
		return reply{}, err
	}
	return decode(value, n)
}

// request runs a script whose tombstone makes it count once, so that it is retried
// until there is a reply, with at least n integers. With keep, its writes are to reach
// replicas.
func (c *Client) request(ctx context.Context, what call, n int, keep bool) (reply, error) {
	send := c.node.do
	if keep {
		send = c.node.doSafe
	}
	for r := c.retry(ctx); ; {
		value, err := send(&r.ctx, what)
		var got reply
		if err == nil {
			got, err = decode(value, n)
		}
		if again, err := r.next(err); !again {
			return got, err
		}
	}
}
