package lock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is one server, one master behind Sentinel, or one cluster. Each master of a cluster has pipes of its
// own: one that hangs must not delay the requests to the others.
type wireNode struct {
	rdb      redis.UniversalClient
	cluster  *redis.ClusterClient // rdb, if it is one
	bg       *background
	judge    func(err error) error                      // of a request: makes it one for callers
	order    func(server string, command func() string) // see nodeOptions; may be nil
	replicas *replicas                                  // nil: the client does not ask for any
	first    *pipes                                     // of the one master; of a cluster whose slots are not known yet
	known    atomic.Bool                                // the slots of the cluster: a reply has come

	mu      sync.Mutex
	masters map[string]*pipes // of a cluster, by address
}

// pipes are those of one master.
type pipes struct {
	plain *pipe
	safe  *pipe // waits for replicas; nil: the client does not ask for any
}

// nodeOptions are what a node needs beside its client.
type nodeOptions struct {
	// judge makes the error of a request, which is not nil, one for the callers of the node; classify says what it means.
	judge          func(err error) error
	order          func(server string, command func() string) // called before each request is sent; nil: not
	replicas       int                                        // that writes are to reach; 0: none, negative: all
	replicaTimeout time.Duration                              // for how long to wait for replicas
}

// newNode is the node of rdb.
func newWireNode(rdb redis.UniversalClient, bg *background, o nodeOptions) *wireNode {
	n := &wireNode{rdb: rdb, bg: bg, judge: o.judge, order: o.order, masters: make(map[string]*pipes)}
	n.cluster, _ = rdb.(*redis.ClusterClient)
	if o.replicas != 0 {
		n.replicas = &replicas{rdb: rdb, need: o.replicas, timeout: o.replicaTimeout}
	}
	n.first = n.newPipes(addresses(rdb))
	if c, ok := rdb.(*redis.Client); ok && c.Options().ContextTimeoutEnabled {
		limit := directTimeout
		if own := c.Options().ReadTimeout; own > 0 {
			limit = min(limit, own)
		}
		n.first.plain.brief = c.WithTimeout(limit)
	}
	return n
}

func (n *wireNode) newPipes(server string) *pipes {
	send := func(ctx context.Context, calls []call) []answer { return sendAll(ctx, n.rdb, calls, false) }
	p := &pipes{plain: &pipe{bg: n.bg, rdb: n.rdb, order: n.order, server: server, send: send}}
	if n.replicas != nil {
		p.safe = &pipe{bg: n.bg, order: n.order, server: server, send: n.replicas.send}
	}
	return p
}

// master is the address of the master that has the slot of key, as far as it is known; empty: there is one
// master, or none is known yet.
func (n *wireNode) master(key string) string {
	if n.cluster == nil || !n.known.Load() {
		return ""
	}
	master, err := n.cluster.MasterForKey(n.bg.ctx, key)
	if err != nil {
		return ""
	}
	return master.Options().Addr
}

func (n *wireNode) pipesFor(key string) *pipes {
	addr := n.master(key)
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

// pipeFor sends the requests about key that do not wait for replicas.
func (n *wireNode) pipeFor(key string) *pipe { return n.pipesFor(key).plain }

// isCluster reports whether the node is a cluster.
func (n *wireNode) isCluster() bool { return n.cluster != nil }

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

// call is one run of a script.
type call struct {
	script  script
	keys    []string
	args    []any
	command []any // the command by digest, or one without a script; nil: made of the above
	queued  bool  // not sent by its caller, which would not retry it after directTimeout
	counted bool  // see doCounted
}

// answer is the result of a call.
type answer struct {
	value any
	err   error
}

// do sends c and returns its reply, or, as soon as ctx ends, an error of unknown outcome. All errors are
// as nodeOptions.judge makes them.
func (n *wireNode) do(ctx context.Context, c call) (any, error) {
	return n.through(ctx, n.pipesFor(c.key()).plain, c)
}

// ask is do for a script whose reply has at least n integers.
func (n *wireNode) ask(ctx context.Context, c call, ints int) (reply, error) {
	value, err := n.do(ctx, c)
	if err != nil {
		return reply{}, err
	}
	r, err := decodeReply(value, ints)
	if err != nil {
		err = n.judge(err)
	}
	return r, err
}

// doSafe is do for a script whose writes are to reach replicas, if the client asks for that.
func (n *wireNode) doSafe(ctx context.Context, c call) (any, error) {
	p := n.pipesFor(c.key())
	if p.safe != nil {
		return n.through(ctx, p.safe, c)
	}
	return n.through(ctx, p.plain, c)
}

// doAll is do for several calls, which it sends at the same time.
func (n *wireNode) doAll(ctx context.Context, calls []call) []answer {
	out := make([]answer, len(calls))
	if len(calls) == 1 {
		out[0].value, out[0].err = n.do(ctx, calls[0])
		return out
	}
	sent := make([]*request, len(calls))
	used := make([]*pipe, len(calls))
	for i, c := range calls {
		used[i] = n.pipesFor(c.key()).plain
		if sent[i], out[i] = used[i].begin(ctx, c); sent[i] == nil {
			out[i] = n.judged(out[i])
		}
	}
	for i, r := range sent {
		if r != nil {
			out[i] = n.judged(used[i].await(ctx, r))
		}
	}
	return out
}

func (n *wireNode) through(ctx context.Context, p *pipe, c call) (any, error) {
	if ctx.Err() != nil {
		return nil, n.judge(notSent(ctx))
	}
	if n.bg.ctx.Err() != nil {
		return nil, n.judge(&wireError{outcome: rejected, reason: closed})
	}
	a := n.judged(p.do(ctx, c))
	return a.value, a.err
}

// judged is a with an error for the callers of the node, if it has one.
func (n *wireNode) judged(a answer) answer {
	if a.err != nil {
		return answer{err: n.judge(a.err)}
	}
	if n.cluster != nil {
		n.known.Store(true)
	}
	return a
}

// waitsForReplicas reports whether requests of doSafe wait for replicas.
func (n *wireNode) waitsForReplicas() bool { return n.replicas != nil }

// line is the command that runs c. Its words are values, as the hooks of a client expect.
func (c *call) line(source bool) []any {
	if c.command != nil && !source {
		return c.command
	}
	if c.command != nil {
		return append([]any{"eval", c.script.source}, c.command[2:]...)
	}
	args := make([]any, 0, 3+len(c.keys)+len(c.args))
	if source {
		args = append(args, "eval", c.script.source, len(c.keys))
	} else {
		args = append(args, "evalsha", c.script.name, len(c.keys))
	}
	for i := range c.keys {
		args = append(args, c.keys[i])
	}
	return append(args, c.args...)
}

// text is c as it is sent.
func (c *call) text() string {
	var text strings.Builder
	for _, word := range c.line(false) {
		fmt.Fprintf(&text, " %v", word)
	}
	return text.String()
}

// key is the first key of c, by which a cluster finds its node.
func (c *call) key() string {
	if c.command == nil {
		return c.keys[0]
	}
	at := 3
	if c.script.scriptText == nil {
		at = 1
	}
	key, _ := c.command[at].(string)
	return key
}
