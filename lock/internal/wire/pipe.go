package wire

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/tasks"
)

// Pipe sends scripts to one server. Calls that arrive at the same time go out as
// one pipeline over one connection; a caller that is alone sends its call itself.
// No goroutine outlives the work, and the mutex is never held during I/O.
type Pipe struct {
	bg    *tasks.Group
	send  func(ctx context.Context, calls []Call) []Answer // one answer for each
	rdb   processor                                        // sends one call; nil: send does
	brief processor                                        // rdb with a read timeout of directTimeout; nil: none

	order  func(server string, command func() string) // see Options; may be nil
	server string                                     // its address, for order

	pool         sync.Pool // of requests that were answered
	mu           sync.Mutex
	waiting      []*Request
	senders      int
	taken        time.Time   // when a sender last took requests
	hangTimer    *time.Timer // runs relieveHanging; nil: it never has
	hangTimerSet bool        // hangTimer will run
	busy         bool        // a caller is sending its call itself
	slow         bool        // no caller does: the last reply was slow, or connections are crowded
	asked        time.Time   // when a caller last asked whether they are crowded
	alarm        *alarm      // of the caller that sends its call itself; nil: none yet
}

// Request is a call in a pipe.
type Request struct {
	call  Call
	done  chan Answer // holds one
	taken bool        // it may have been sent
}

const (
	// minSenders is how many pipelines are sent at once: while one waits for the
	// server, the next is gathered.
	minSenders = 2
	// maxSenders is the limit when earlier ones hang.
	maxSenders = 32
	// senderHangs is the time without progress after which the senders count as hanging. Then the calls behind them go out
	// over another connection: they do not wait until the senders give up lost replies.
	senderHangs = 100 * time.Millisecond
	// directTimeout is for how long a caller that sends its call itself waits for the reply. Passing a call to
	// another goroutine and being woken by it takes as long as a reply of a fast server. After a reply that took
	// longer than directTimeout, all callers use the pipeline until a reply has come within half of it.
	directTimeout = 100 * time.Millisecond
	// maxPipeline is how many calls one pipeline carries.
	maxPipeline = 128
	// crowdedEvery is how often callers that send their calls themselves ask whether all connections are in use: the
	// statistics of go-redis allocate.
	crowdedEvery = time.Millisecond
)

// do sends c and returns its answer, or, as soon as ctx ends, an error: go-redis
// does not look at ctx while it reads, so the read is left to end by itself.
func (p *Pipe) do(ctx context.Context, c Call) Answer {
	if p.order != nil {
		p.waitForTurn(c)
		if ctx.Err() != nil { // or drop below would compete with a sender
			return Answer{Err: NotSent(ctx)}
		}
	}
	if !c.Queued && p.beginDirect(ctx, &c) {
		if a := p.sendDirect(ctx, c); !errors.Is(a.Err, errNoConnection) {
			return a
		}
	}
	r := p.enqueue(c)
	if r == nil {
		return Answer{Err: &Error{Outcome: Rejected, Reason: Closed}}
	}
	return p.Await(ctx, r)
}

// begin is the first half of do, for a call that is not the only one; await is the second. Without a request,
// the answer has the error.
func (p *Pipe) begin(ctx context.Context, c Call) (*Request, Answer) {
	if p.order != nil {
		p.waitForTurn(c)
	}
	if ctx.Err() != nil {
		return nil, Answer{Err: NotSent(ctx)}
	}
	r := p.enqueue(c)
	if r == nil {
		return nil, Answer{Err: &Error{Outcome: Rejected, Reason: Closed}}
	}
	return r, Answer{}
}

// enqueue has a sender send c; nil: the client is closed.
func (p *Pipe) enqueue(c Call) *Request {
	r := p.NewRequest(c)
	if !p.Push(r) {
		return nil
	}
	return r
}

// Prepare is the request of a call that is to be pushed at once.
func (p *Pipe) Prepare(c Call) *Request {
	if p.order != nil {
		p.waitForTurn(c)
	}
	return p.NewRequest(c)
}

// NewRequest is the request of a call that is to be pushed; it does not wait for a turn.
func (p *Pipe) NewRequest(c Call) *Request {
	r, _ := p.pool.Get().(*Request)
	if r == nil {
		r = &Request{done: make(chan Answer, 1)}
	}
	r.call = c
	return r
}

// Await returns the answer to r, or, as soon as ctx ends, an error.
func (p *Pipe) Await(ctx context.Context, r *Request) Answer {
	select {
	case a := <-r.done:
		if p.order != nil { // the replies of one pipeline come at one instant
			p.waitForTurn(r.call)
		}
		r.call, r.taken = Call{}, false
		p.pool.Put(r)
		return a
	case <-ctx.Done():
		if p.order != nil { // a sender may take r at this instant
			p.waitForTurn(r.call)
		}
	}
	if p.drop(r) {
		return Answer{Err: NotSent(ctx)}
	}
	select {
	case a := <-r.done:
		return a
	default:
		return Answer{Err: &Error{Outcome: Unknown, Err: fmt.Errorf("no reply yet: %w", context.Cause(ctx))}}
	}
}

// waitForTurn is a function of its own so that c stays on the stack of do.
func (p *Pipe) waitForTurn(c Call) { p.order(p.server, c.text) }

// bounded reports whether ctx may end before a reply comes. It does not start the
// timer of a [LazyTimeout].
func bounded(ctx context.Context) bool {
	_, ends := ctx.Deadline()
	return ends || ctx.Done() != nil
}

// beginDirect reports whether the caller may send c itself: it is alone, its context will not end much before
// directTimeout, and it will not wait for a connection, as far as is known.
func (p *Pipe) beginDirect(ctx context.Context, c *Call) bool {
	if bounded(ctx) && p.brief == nil {
		return false
	}
	if end, ends := ctx.Deadline(); ends && time.Until(end) < 2*directTimeout {
		return false
	}
	begun, ask := p.enterDirect()
	if ask && crowded(p.bg.Context, p.rdb, c.Key()) {
		p.leaveDirect(true)
		return false
	}
	return begun
}

// enterDirect reports whether the caller is alone, and whether it is to ask if connections are crowded.
func (p *Pipe) enterDirect() (begun, ask bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy || p.senders > 0 || p.slow || !p.bg.Enter() {
		return false, false
	}
	p.busy = true
	if now := time.Now(); now.Sub(p.asked) >= crowdedEvery {
		p.asked, ask = now, true
	}
	return true, ask
}

// leaveDirect undoes enterDirect. With slow, the next callers use the pipeline.
func (p *Pipe) leaveDirect(slow bool) {
	p.mu.Lock()
	p.busy = false
	p.slow = slow
	p.mu.Unlock()
	p.bg.Done()
}

// sendDirect sends c from the goroutine of its caller. With errNoConnection it was not sent.
func (p *Pipe) sendDirect(ctx context.Context, c Call) Answer {
	rdb := p.rdb
	ends := bounded(ctx)
	if ends {
		rdb = p.brief
		ctx = direct{ctx, p.setAlarm()}
	}
	sent := time.Now()
	var a Answer
	if rdb != nil {
		a = SendOne(ctx, rdb, &c)
	} else {
		a = p.send(ctx, []Call{c})[0]
	}
	if ends {
		p.stopAlarm()
	}
	p.leaveDirect(time.Since(sent) >= directTimeout)
	return a
}

// Push appends requests to the waiting ones, in this order, and starts a sender if it takes one more.
func (p *Pipe) Push(some ...*Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	enough := p.senders >= minSenders
	if enough && p.senders < maxSenders && time.Since(p.taken) > senderHangs {
		enough = false
	}
	if enough {
		p.watchForHang(senderHangs)
	} else {
		if !p.bg.Start(p.work) {
			return false
		}
		p.senders++
	}
	p.waiting = append(p.waiting, some...)
	return true
}

// drop takes r back, and reports false if it may have been sent.
func (p *Pipe) drop(r *Request) bool {
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

// work sends waiting requests until none is left.
func (p *Pipe) work() {
	var calls []Call
	for {
		// Goroutines that are about to send get the chance to join this pipeline.
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
		answers := p.send(p.bg.Context, calls)
		if time.Since(sent) < directTimeout/2 {
			p.markQuick(calls[0].Key())
		}
		for i, a := range answers {
			some[i].done <- a
		}
	}
}

// markQuick lets callers send by themselves again, unless they would wait for a connection to the server of key.
func (p *Pipe) markQuick(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = p.slow && crowded(p.bg.Context, p.rdb, key)
}

// take is the next batch to send; none: the sender ends.
func (p *Pipe) take() []*Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.waiting), maxPipeline)
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

// noRetry is a command that go-redis does not send again by itself: it resends
// after a read timeout, and then it would be unknown how often a script may have
// run. Retries are made by the callers, which judge the outcome.
type noRetry struct{ *redis.Cmd }

// NoRetry is asked by go-redis.
func (noRetry) NoRetry() bool { return true }

// processor sends one command, as every client of go-redis does.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// sendAll runs calls on rdb, in one pipeline if there is more than one, by their
// digests, and by their sources on a server that does not know them (a restart, a
// failover and SCRIPT FLUSH empty the cache). With asking each call comes after ASKING:
// for the master to which the slot of its key migrates.
func sendAll(ctx context.Context, rdb redis.Cmdable, calls []Call, asking bool) []Answer {
	out := run(ctx, rdb, calls, false, asking)
	var missing []Call
	var at []int
	for i, a := range out {
		if a.Err != nil && redis.HasErrorPrefix(a.Err, "NOSCRIPT") {
			missing, at = append(missing, calls[i]), append(at, i)
		}
	}
	if len(missing) > 0 {
		for i, a := range run(ctx, rdb, missing, true, asking) {
			out[at[i]] = a
		}
	}
	return out
}

// SendOne is sendAll for one call.
func SendOne(ctx context.Context, rdb processor, c *Call) Answer {
	cmd := redis.NewCmd(ctx, c.line(false)...)
	if err := rdb.Process(ctx, noRetry{cmd}); err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = redis.NewCmd(ctx, c.line(true)...)
		_ = rdb.Process(ctx, noRetry{cmd}) // the command has the error too
	}
	return answerOf(cmd)
}

// answerOf is the reply to cmd. That there is none, as SET NX replies, is no error.
func answerOf(cmd *redis.Cmd) Answer {
	value, err := cmd.Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return Answer{value, err}
}

// run sends calls once, by their sources or by their digests.
func run(ctx context.Context, rdb redis.Cmdable, calls []Call, sources, asking bool) []Answer {
	out := make([]Answer, len(calls))
	cmds := make([]noRetry, len(calls))
	for i := range calls {
		cmds[i] = noRetry{redis.NewCmd(ctx, calls[i].line(sources)...)}
	}
	if one, ok := rdb.(processor); ok && len(calls) == 1 && !asking && !crowded(ctx, rdb, calls[0].Key()) {
		_ = one.Process(ctx, cmds[0]) // the command has the error too
	} else {
		pipeline := rdb.Pipeline()
		for _, cmd := range cmds {
			if asking { // it applies only to the next command
				_ = pipeline.Process(ctx, noRetry{redis.NewCmd(ctx, "asking")})
			}
			_ = pipeline.Process(ctx, cmd) // only queued
		}
		_, _ = pipeline.Exec(ctx) // each command has its own error
	}
	for i, cmd := range cmds {
		out[i] = answerOf(cmd.Cmd)
	}
	return out
}
