package lock

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipe carries scripts to one server. Whatever many goroutines ask for at the
// same time goes out as one pipeline over one connection; who asks alone is sent
// at once. No goroutine outlives the work, and the mutex guards memory only.
type pipe struct {
	bg    *background
	send  func(ctx context.Context, calls []call) []answer // one answer for each
	one   func(ctx context.Context, c *call) answer        // the same for one call; nil: send does that too
	heeds bool                                             // send ends with its context, even while it reads

	spare   sync.Pool // of requests that were answered
	mu      sync.Mutex
	waiting []*request
	senders int
	taken   time.Time // when a sender last took requests
	alone   bool      // somebody sends for himself
	slow    bool      // nobody does: the last answer was not quick
}

// request is a call on its way through a pipe.
type request struct {
	call  call
	done  chan answer // holds one
	taken bool        // it may have been sent
}

const (
	// crew is how many pipelines are on their way at once: while one waits for
	// the server, the next is gathered.
	crew = 2
	// crewMax is how many there are at most when those before hang.
	crewMax = 32
	// hangs is after what time without movement a pipe does not wait for its crew.
	hangs = 100 * time.Millisecond
	// standing is for how long a caller stands at the wire himself. To hand a request
	// to another goroutine and to be woken by it takes as long as a quick server.
	// When an answer took longer, nobody does so until one has come in half of it.
	standing = 100 * time.Millisecond
	// together is how many calls one pipeline carries at most.
	together = 128
)

// do sends c and returns its answer, or, as soon as ctx ends, an error: go-redis
// does not look at ctx while it reads, so the read is left to end by itself.
// Only who is alone stands at the wire himself, for a short time.
func (p *pipe) do(ctx context.Context, c call) answer {
	if !c.whole && p.begin(ctx) {
		return p.stand(ctx, c)
	}
	if u, is := ctx.(*until); is { // it has to be told of its end
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(u.Context, u.end)
		defer cancel()
	}
	r, _ := p.spare.Get().(*request)
	if r == nil {
		r = &request{done: make(chan answer, 1)}
	}
	r.call = c
	if !p.push(r) {
		return answer{err: &requestError{rejected, ErrClosed}}
	}
	select {
	case a := <-r.done:
		r.call, r.taken = call{}, false
		p.spare.Put(r)
		return a
	case <-ctx.Done():
	}
	if p.drop(r) {
		return answer{err: notSentError(ctx)}
	}
	select {
	case a := <-r.done:
		return a
	default:
		return answer{err: &requestError{unknown, fmt.Errorf("no answer yet: %w", context.Cause(ctx))}}
	}
}

// begin is whether the caller may send for himself.
func (p *pipe) begin(ctx context.Context) bool {
	end, ends := ctx.Deadline()
	if !p.heeds && (ends || ctx.Done() != nil) || ends && time.Until(end) < 2*standing {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alone || p.senders > 0 || p.slow || !p.bg.enter() {
		return false
	}
	p.alone = true
	return true
}

// until is a context with a deadline that costs no timer: it says when it ends
// to whoever asks, as connections do, and tells nobody.
type until struct {
	context.Context
	end time.Time
}

// Deadline is that of context.Context.
func (u *until) Deadline() (time.Time, bool) { return u.end, true }

// stand sends c for the caller.
func (p *pipe) stand(ctx context.Context, c call) answer {
	sent := time.Now()
	limited := ctx
	if _, ends := ctx.Deadline(); ends || ctx.Done() != nil {
		limited = &until{ctx, sent.Add(standing)}
	}
	var a answer
	if p.one != nil {
		a = p.one(limited, &c)
	} else {
		a = p.send(limited, []call{c})[0]
	}
	slow := time.Since(sent) >= standing
	p.mu.Lock()
	p.alone = false
	p.slow = slow
	p.mu.Unlock()
	p.bg.done()
	return a
}

// push puts r at the end of what waits, and sees to it that somebody sends it.
func (p *pipe) push(r *request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	enough := p.senders >= crew
	if enough && p.senders < crewMax && time.Since(p.taken) > hangs {
		enough = false
	}
	if !enough {
		if !p.bg.start(p.work) {
			return false
		}
		p.senders++
	}
	p.waiting = append(p.waiting, r)
	return true
}

// drop takes r back, and is false if it may have been sent.
func (p *pipe) drop(r *request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.waiting {
		if other == r {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return true
		}
	}
	return !r.taken
}

// work sends what waits until nothing does.
func (p *pipe) work() {
	var calls []call
	for {
		// Whoever is about to ask is let ask first: then it goes along.
		runtime.Gosched()
		some := p.take()
		if len(some) == 0 {
			return
		}
		calls = calls[:0]
		for _, r := range some {
			calls = append(calls, r.call)
		}
		sent := time.Now()
		answers := p.send(p.bg.ctx, calls)
		if time.Since(sent) < standing/2 {
			p.quick()
		}
		for i, a := range answers {
			some[i].done <- a
		}
	}
}

// quick is called when an answer has come in good time.
func (p *pipe) quick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = false
}

// take is what to send next; nothing: the sender is to go.
func (p *pipe) take() []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.waiting), together)
	if n == 0 {
		p.senders--
		return nil
	}
	p.taken = time.Now()
	some := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	if len(p.waiting) == 0 {
		p.waiting = nil
	}
	for _, r := range some {
		r.taken = true
	}
	return some
}

// sendAll runs calls on rdb, in one pipeline if there is more than one, by their
// digests, and by their sources on a server that has not got them (a restart, a
// failover and SCRIPT FLUSH all empty the cache).
func sendAll(ctx context.Context, rdb redis.Cmdable, calls []call) []answer {
	out := run(ctx, rdb, calls, false)
	var again []call
	var places []int
	for i, a := range out {
		if a.err != nil && redis.HasErrorPrefix(a.err, "NOSCRIPT") {
			again, places = append(again, calls[i]), append(places, i)
		}
	}
	if len(again) > 0 {
		for i, a := range run(ctx, rdb, again, true) {
			out[places[i]] = a
		}
	}
	return out
}

// sendOne is sendAll for one call.
func sendOne(ctx context.Context, rdb processor, c *call) answer {
	cmd := redis.NewCmd(ctx, c.line(false)...)
	if err := rdb.Process(ctx, once{cmd}); err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = redis.NewCmd(ctx, c.line(true)...)
		_ = rdb.Process(ctx, once{cmd}) // the command has the error too
	}
	value, err := cmd.Result()
	return answer{value, err}
}

// processor is what sends one command: every client of go-redis.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// run sends calls once, by their sources or by their digests.
func run(ctx context.Context, rdb redis.Cmdable, calls []call, sources bool) []answer {
	out := make([]answer, len(calls))
	cmds := make([]once, len(calls))
	for i := range calls {
		cmds[i] = once{redis.NewCmd(ctx, calls[i].line(sources)...)}
	}
	if one, is := rdb.(processor); is && len(calls) == 1 {
		_ = one.Process(ctx, cmds[0]) // the command has the error too
	} else {
		pipeline := rdb.Pipeline()
		for _, cmd := range cmds {
			_ = pipeline.Process(ctx, cmd) // only queued
		}
		_, _ = pipeline.Exec(ctx) // each command has its own error
	}
	for i, cmd := range cmds {
		value, err := cmd.Result()
		out[i] = answer{value: value, err: err}
	}
	return out
}

// line is the command that runs c. Strings are pointed at: as they are, each
// would be copied into an interface.
func (c *call) line(source bool) []any {
	if c.ready != nil && !source {
		return c.ready
	}
	if c.ready != nil {
		return append([]any{"eval", &c.script.source}, c.ready[2:]...)
	}
	args := make([]any, 0, 3+len(c.keys)+len(c.args))
	if source {
		args = append(args, "eval", &c.script.source, len(c.keys))
	} else {
		args = append(args, "evalsha", &c.script.digest, len(c.keys))
	}
	for i := range c.keys {
		args = append(args, &c.keys[i])
	}
	return append(args, c.args...)
}

// key is the first key of c, by which a cluster finds its place.
func (c *call) key() string {
	if c.ready == nil {
		return c.keys[0]
	}
	key, _ := c.ready[3].(*string)
	return *key
}
