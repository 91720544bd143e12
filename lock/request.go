package lock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// node is a server or a cluster, and the scripts of the kinds of locks for it.
type node struct {
	*wireNode
	kinds *kindScripts
}

func newNode(rdb redis.UniversalClient, bg *background, o Options) *node {
	n := &node{kinds: kindScript, wireNode: newWireNode(rdb, bg, nodeOptions{
		judge: judge, order: o.Order, replicas: o.Replicas, replicaTimeout: o.ReplicaTimeout,
	})}
	if n.isCluster() {
		n.kinds = clusterKindScript
	}
	return n
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
func (c *Client) runOn(ctx context.Context, what call, n int) (reply, error) {
	if err := c.ownKinds(); err != nil {
		return reply{}, err
	}
	if err := checkName(what.key()); err != nil {
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
		value, _, err := doCounted(&r.ctx, send, what)
		var got reply
		if err == nil {
			got, err = decode(value, n)
		}
		if again, err := r.next(err); !again {
			return got, err
		}
	}
}
