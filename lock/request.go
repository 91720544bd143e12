package lock

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/tasks"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// node is a server or a cluster, and the scripts of the kinds of locks for it.
type node struct {
	*wire.Node
	kinds *kindScripts
}

func newNode(rdb redis.UniversalClient, bg *tasks.Group, o Options) *node {
	n := &node{kinds: kindScript, Node: wire.NewNode(rdb, bg, wire.Options{
		Judge: judge, Order: o.Order, Replicas: o.Replicas, ReplicaTimeout: o.ReplicaTimeout,
	})}
	if n.IsCluster() {
		n.kinds = clusterKindScript
	}
	return n
}

// query is do for a script that belongs to no hold and must not run twice: it is
// retried a few times if it was certainly not executed.
func (c *Client) query(ctx context.Context, n *node, what wire.Call) (any, error) {
	what.Queued = true
	for i := 1; ; i++ {
		value, err := n.Do(ctx, what)
		if err == nil || i == tries || outcomeOf(err) != wire.NotExecuted || !c.pause(ctx, c.backoff()) {
			return value, err
		}
	}
}

// runOn is query for a lock of the one master; the reply has at least n integers.
func (c *Client) runOn(ctx context.Context, what wire.Call, n int) (wire.Reply, error) {
	if err := c.ownKinds(); err != nil {
		return wire.Reply{}, err
	}
	if err := checkName(what.Key()); err != nil {
		return wire.Reply{}, err
	}
	value, err := c.query(ctx, c.node, what)
	if err != nil {
		return wire.Reply{}, err
	}
	return decode(value, n)
}

// request runs a script whose tombstone makes it count once, so that it is retried until there is a reply, with at
// least n integers. With keep, its writes are to reach replicas.
func (c *Client) request(ctx context.Context, what wire.Call, n int, keep bool) (wire.Reply, error) {
	send := c.node.Do
	if keep {
		send = c.node.DoSafe
	}
	for r := c.retry(ctx); ; {
		value, _, err := doCounted(&r.ctx, send, what)
		var got wire.Reply
		if err == nil {
			got, err = decode(value, n)
		}
		if again, err := r.next(err); !again {
			return got, err
		}
	}
}
