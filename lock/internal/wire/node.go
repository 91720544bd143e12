// Package wire sends scripts to Redis: to one master, one behind Sentinel, or a cluster; several at once as a pipeline,
// over few connections, and, if asked to, with WAIT for replicas. It says of each request that failed whether a server
// may have executed it. It retries nothing, and knows nothing of locks.
//
// Read [Node] first, then [Call], [Pipe] and [Error].
package wire

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/tasks"
)

// Node is one server, one master behind Sentinel, or one cluster. Each master of a cluster has pipes of its own: a
// master that hangs must not delay the requests to the others.
type Node struct {
	Redis    redis.UniversalClient
	cluster  *redis.ClusterClient // rdb, if it is one
	bg       *tasks.Group
	judge    func(err error) error                      // of a request: makes it one for callers
	order    func(server string, command func() string) // see Options; may be nil
	replicas *replicas                                  // nil: the client does not ask for any
	first    *pipes                                     // of the one master; of a cluster whose slots are not known yet
	known    atomic.Bool                                // the slots of the cluster: a reply has come

	mu      sync.Mutex
	masters map[string]*pipes // of a cluster, by address
}

// pipes are the pipes to one master.
type pipes struct {
	plain *Pipe
	safe  *Pipe // waits for replicas; nil: the client does not ask for any
}

// Options of a [Node].
type Options struct {
	// Judge converts the error of a request, which is not nil, to an error for the callers of the node. See [Classify].
	Judge          func(err error) error
	Order          func(server string, command func() string) // called before each request is sent; nil: never called
	Replicas       int                                        // that writes are to reach; 0: none, negative: all
	ReplicaTimeout time.Duration                              // for how long to wait for replicas
}

// NewNode is the node of rdb.
func NewNode(rdb redis.UniversalClient, bg *tasks.Group, o Options) *Node {
	n := &Node{Redis: rdb, bg: bg, judge: o.Judge, order: o.Order, masters: make(map[string]*pipes)}
	n.cluster, _ = rdb.(*redis.ClusterClient)
	if o.Replicas != 0 {
		n.replicas = &replicas{rdb: rdb, need: o.Replicas, timeout: o.ReplicaTimeout}
		context.AfterFunc(bg.Context, n.replicas.close)
	}
	n.first = n.newPipes(Addresses(rdb))
	if c, ok := rdb.(*redis.Client); ok && c.Options().ContextTimeoutEnabled {
		limit := directTimeout
		if own := c.Options().ReadTimeout; own > 0 {
			limit = min(limit, own)
		}
		n.first.plain.brief = c.WithTimeout(limit)
	}
	return n
}

func (n *Node) newPipes(server string) *pipes {
	send := func(ctx context.Context, calls []Call) []Answer { return sendAll(ctx, n.Redis, calls, false) }
	p := &pipes{plain: &Pipe{bg: n.bg, rdb: n.Redis, order: n.order, server: server, send: send}}
	if n.replicas != nil {
		p.safe = &Pipe{bg: n.bg, order: n.order, server: server, send: n.replicas.send}
	}
	return p
}

// Master is the address of the master that has the slot of key, as far as it is known; empty: there is one
// master, or none is known yet.
func (n *Node) Master(key string) string {
	if n.cluster == nil || !n.known.Load() {
		return ""
	}
	master, err := n.cluster.MasterForKey(n.bg.Context, key)
	if err != nil {
		return ""
	}
	return master.Options().Addr
}

func (n *Node) pipesFor(key string) *pipes {
	addr := n.Master(key)
	if addr == "" {
		return n.first
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.masters[addr]
	if p == nil {
		p = n.newPipes(addr)
		n.masters[addr] = p
	}
	return p
}

// PipeFor sends the requests about key that do not wait for replicas.
func (n *Node) PipeFor(key string) *Pipe { return n.pipesFor(key).plain }

// IsCluster reports whether the node is a cluster.
func (n *Node) IsCluster() bool { return n.cluster != nil }

// crowded reports whether all connections to the server of key are in use, as by blocking commands of the user's
// program. Pipelines have a few connections of their own.
func crowded(ctx context.Context, rdb any, key string) bool {
	var one *redis.Client
	switch c := rdb.(type) {
	case *redis.Client:
		one = c
	case *redis.ClusterClient:
		if c.Options().PipelinePoolSize >= 0 {
			one, _ = c.MasterForKey(ctx, key)
		}
	}
	if one == nil || one.Options().PipelinePoolSize < 0 {
		return false
	}
	pool := one.PoolStats()
	return pool.IdleConns == 0 && int(pool.TotalConns) >= one.Options().PoolSize
}

// Call is one run of a script.
type Call struct {
	Script  Script
	Keys    []string
	Args    []any
	Command []any // the command by digest, or one without a script; nil: made of the above
	Queued  bool  // not sent by its caller, which would not retry it after directTimeout
	Counted bool  // its keys are a hash that counts and a tombstone, which may be apart while their slot migrates
}

// Answer is the result of a call.
type Answer struct {
	Value any
	Err   error
}

// Do sends c and returns its reply, or, as soon as ctx ends, an error of unknown outcome. All errors are
// converted by [Options].Judge.
func (n *Node) Do(ctx context.Context, c Call) (any, error) {
	return n.through(ctx, n.pipesFor(c.Key()).plain, c)
}

// Ask is [Node.Do] for a script whose reply has at least n integers.
func (n *Node) Ask(ctx context.Context, c Call, ints int) (Reply, error) {
	value, err := n.Do(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	r, err := Decode(value, ints)
	if err != nil {
		err = n.judge(err)
	}
	return r, err
}

// DoSafe is [Node.Do] for a script whose writes are to reach replicas, if the client asks for that.
func (n *Node) DoSafe(ctx context.Context, c Call) (any, error) {
	p := n.pipesFor(c.Key())
	if p.safe != nil {
		return n.through(ctx, p.safe, c)
	}
	return n.through(ctx, p.plain, c)
}

// DoAll is [Node.Do] for several calls, which it sends at the same time.
func (n *Node) DoAll(ctx context.Context, calls []Call) []Answer {
	out := make([]Answer, len(calls))
	if len(calls) == 1 {
		out[0].Value, out[0].Err = n.Do(ctx, calls[0])
		return out
	}
	sent := make([]*Request, len(calls))
	used := make([]*Pipe, len(calls))
	for i, c := range calls {
		used[i] = n.pipesFor(c.Key()).plain
		if sent[i], out[i] = used[i].begin(ctx, c); sent[i] == nil {
			out[i] = n.Judged(out[i])
		}
	}
	for i, r := range sent {
		if r != nil {
			out[i] = n.Judged(used[i].Await(ctx, r))
		}
	}
	return out
}

func (n *Node) through(ctx context.Context, p *Pipe, c Call) (any, error) {
	if ctx.Err() != nil {
		return nil, n.judge(NotSent(ctx))
	}
	if n.bg.Context.Err() != nil {
		return nil, n.judge(&Error{Outcome: Rejected, Reason: Closed})
	}
	a := n.Judged(p.do(ctx, c))
	return a.Value, a.Err
}

// Judged is a with an error for the callers of the node, if it has one.
func (n *Node) Judged(a Answer) Answer {
	if a.Err != nil {
		return Answer{Err: n.judge(a.Err)}
	}
	if n.cluster != nil {
		n.known.Store(true)
	}
	return a
}

// WaitsForReplicas reports whether requests of DoSafe wait for replicas.
func (n *Node) WaitsForReplicas() bool { return n.replicas != nil }

// line is the command that runs c. Its words are values, as the hooks of a client expect.
func (c *Call) line(source bool) []any {
	if c.Command != nil && !source {
		return c.Command
	}
	if c.Command != nil {
		return append([]any{"eval", c.Script.source}, c.Command[2:]...)
	}
	args := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	if source {
		args = append(args, "eval", c.Script.source, len(c.Keys))
	} else {
		args = append(args, "evalsha", c.Script.Name, len(c.Keys))
	}
	for i := range c.Keys {
		args = append(args, c.Keys[i])
	}
	return append(args, c.Args...)
}

// text is c as it is sent.
func (c *Call) text() string {
	var text strings.Builder
	for _, word := range c.line(false) {
		fmt.Fprintf(&text, " %v", word)
	}
	return text.String()
}

// Key is the first key of c, by which a cluster finds its node.
func (c *Call) Key() string {
	if c.Command == nil {
		return c.Keys[0]
	}
	at := 3
	if c.Script.scriptText == nil {
		at = 1
	}
	key, _ := c.Command[at].(string)
	return key
}
