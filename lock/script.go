package lock

import (
	"context"
	"crypto/sha1"
	_ "embed" // the scripts are part of the program
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed script/mint.lua
var mintSource string

//go:embed script/acquire.lua
var acquireSource string

//go:embed script/release.lua
var releaseSource string

//go:embed script/renew.lua
var renewSource string

// script is a Lua program and the digest under which servers keep it.
type script struct{ *text }

type text struct{ source, digest string }

func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{&text{source: source, digest: hex.EncodeToString(sum[:])}}
}

// scripts are those of a mutex. What is the same for all requests of a client is
// part of them: an argument takes the server as long as a cheap command.
type scripts struct {
	acquire, fenced, release, renew script
	lease                           int64 // of an acquire that names none, in milliseconds
}

func newScripts(o Options) *scripts {
	lease := milliseconds(o.Lease)
	head := fmt.Sprintf("local standard = '%d'\n", lease)
	return &scripts{
		acquire: newScript(head + acquireSource),
		fenced:  newScript(head + mintSource + acquireSource),
		release: newScript(fmt.Sprintf("local life = '%d'\n", o.tombstoneTTL()) + releaseSource),
		renew:   newScript(renewSource),
		lease:   lease,
	}
}

// once is a command that go-redis must not send again of its own accord: it
// resends after a read timeout, and then nobody would know how often a script
// may have run. Retries are made here, where the outcome is judged.
type once struct{ *redis.Cmd }

// NoRetry is asked by go-redis.
func (once) NoRetry() bool { return true }

// node is one server, one master behind Sentinel, or one cluster.
type node struct {
	rdb   redis.UniversalClient
	bg    *background
	plain *pipe
	safe  *pipe // sends what is to be on replicas; nil: that is not asked for
}

func newNode(rdb redis.UniversalClient, bg *background) *node {
	n := &node{rdb: rdb, bg: bg}
	n.plain = &pipe{
		bg:   bg,
		send: func(ctx context.Context, calls []call) []answer { return sendAll(ctx, rdb, calls) },
		one:  func(ctx context.Context, c *call) answer { return sendOne(ctx, rdb, c) },
	}
	if c, is := rdb.(*redis.Client); is {
		n.plain.heeds = c.Options().ContextTimeoutEnabled
	}
	return n
}

// call is one run of a script.
type call struct {
	script script
	keys   []string
	args   []any
	ready  []any // if not nil, the command by the digest; else made of the above
	whole  bool  // nobody would ask again if the wait for its answer were cut short
}

type answer struct {
	value any
	err   error
}

// do sends c and returns its answer, or, as soon as ctx ends, an error of
// unknown fate. All errors are *requestError.
func (n *node) do(ctx context.Context, c call) (any, error) { return n.through(ctx, n.plain, c) }

// take is do for a script that takes a lock, which is to be on replicas if that
// is asked for.
func (n *node) take(ctx context.Context, c call) (any, error) {
	if n.safe != nil {
		return n.through(ctx, n.safe, c)
	}
	return n.through(ctx, n.plain, c)
}

func (n *node) through(ctx context.Context, p *pipe, c call) (any, error) {
	if ctx.Err() != nil {
		return nil, notSentError(ctx)
	}
	if n.bg.ctx.Err() != nil {
		return nil, &requestError{rejected, ErrClosed}
	}
	a := p.do(ctx, c)
	if a.err == nil {
		return a.value, nil
	}
	if r, is := a.err.(*requestError); is {
		return nil, r
	}
	return nil, classify(a.err)
}

// integers reads an answer that is a list of n integers.
func integers(value any, n int) ([]int64, error) {
	list, ok := value.([]any)
	if !ok || len(list) != n {
		return nil, &requestError{unknown, fmt.Errorf("the server answered %v, want %d integers", value, n)}
	}
	out := make([]int64, n)
	for i, v := range list {
		if out[i], ok = v.(int64); !ok {
			return nil, &requestError{unknown, fmt.Errorf("the server answered %v, want integers", value)}
		}
	}
	return out, nil
}
