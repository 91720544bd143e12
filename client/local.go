package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/lockchaos/lockchaos/history"
)

// Local is a native client in the harness's own process, for backends with virtual time, where a client is stopped by
// blocking its [Hooks] and its network. Like a client on standard input it executes one request at a time.
// Its methods may be called concurrently.
type Local struct {
	native  *native
	hooks   Hooks
	queue   chan *call
	raw     chan *notice // of the lock
	notices chan Reply   // notices after their hook
	cancel  context.CancelFunc
	idle    chan struct{} // closed when the lock is closed
	done    chan struct{} // closed after the last notice
	dead    chan struct{} // closed by Kill

	mu     sync.Mutex
	closed bool
	killed bool
}

// notice is a message of the lock that replies to no request, with its time on the clock of the client.
type notice struct {
	Reply
	at int64
}

// text orders the notices of one instant.
func (n *notice) text() string { return fmt.Sprint(n.Event, n.Op, n.Key, n.Owner) }

// call is a request that waits for its reply.
type call struct {
	request Request
	reply   chan Reply // 1 deep

	mu   sync.Mutex
	late bool // Do has timed out
	done bool // the reply was sent
}

var _ Client = (*Local)(nil)

// rawNotices is how many notices are buffered before the lock itself has to wait.
const rawNotices = 256

// Hooks block until the client may act: until its scheduler slot comes, and
// for as long as it is stopped.
type Hooks struct {
	BeforeStep   func() // before a request is executed, and before its reply is sent
	BeforeNotice func() // before a notice is sent; at least one nanosecond passes
	AfterTimeout func() // when Do has timed out; returns after all events of that instant
}

// NewLocal returns a client that stamps Reply.MonoNS with mono. Its lock is row, whatever init names.
func NewLocal(mono func() int64, hooks Hooks, row Spec) *Local {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Local{
		hooks: hooks, queue: make(chan *call, 16), cancel: cancel,
		raw: make(chan *notice, rawNotices), notices: make(chan Reply, noticeQueue),
		idle: make(chan struct{}), done: make(chan struct{}), dead: make(chan struct{}),
	}
	l.native = newNative(l.notify, mono, func(string) (Spec, error) { return row, nil })
	go l.serve(ctx)
	go l.forward()
	return l
}

// serve executes one request after the other until Close.
func (l *Local) serve(ctx context.Context) {
	for c := range l.queue {
		l.hooks.BeforeStep()
		reply := l.native.handle(ctx, c.request)
		reply.ID = c.request.ID
		l.hooks.BeforeStep()
		l.reply(c, reply)
	}
	l.native.handle(context.WithoutCancel(ctx), Request{Op: Close})
	close(l.idle)
}

func (l *Local) notify(r Reply) {
	select {
	case l.raw <- &notice{r, l.native.mono()}:
	case <-l.done: // the lock was closed
	}
}

// reply sends the reply of c, or makes it a late one if Do has timed out.
func (l *Local) reply(c *call, reply Reply) {
	c.mu.Lock()
	late := c.late
	c.done = true
	c.mu.Unlock()
	if late {
		reply.Event, reply.Op, reply.Key = EventLate, c.request.Op, c.request.Key
		l.notify(reply)
		return
	}
	c.reply <- reply
}

// forward sends notices, one at a time, until the lock is closed. Goroutines that raise notices at one instant of
// virtual time do so in any order, so notices are sorted.
func (l *Local) forward() {
	defer close(l.done)
	defer close(l.notices)
	var pending []*notice
	for idle := false; !idle || len(pending) > 0 || len(l.raw) > 0; {
		if len(pending) == 0 && !idle {
			select {
			case n := <-l.raw:
				pending = append(pending, n)
			case <-l.idle:
				idle = true
				continue
			case <-l.dead:
				return
			}
		}
		l.hooks.BeforeNotice()
		for len(l.raw) > 0 {
			pending = append(pending, <-l.raw)
		}
		slices.SortStableFunc(pending, func(a, b *notice) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text(), b.text()))
		})
		select {
		case <-l.dead:
			return
		default:
		}
		next := pending[0].Reply
		if pending = pending[1:]; next.Event == history.Lost {
			next.MonoNS = 0 // a client that was stopped notices it only now
		}
		l.notices <- next
	}
}

// Do executes r and waits for the reply. If ctx ends first the error is ErrTimeout, and the
// reply that comes later is delivered to Notices as [EventLate].
func (l *Local) Do(ctx context.Context, r Request) (Reply, error) {
	c := &call{request: r, reply: make(chan Reply, 1)}
	if err := l.enqueue(c); err != nil {
		return Reply{ID: r.ID}, err
	}
	select {
	case reply := <-c.reply:
		return reply, nil
	case <-l.dead:
		return Reply{ID: r.ID}, ErrKilled
	case <-ctx.Done():
		l.hooks.AfterTimeout()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return <-c.reply, nil
	}
	c.late = true
	return Reply{ID: r.ID}, fmt.Errorf("%w: %s: %w", ErrTimeout, r.Op, ctx.Err())
}

func (l *Local) enqueue(c *call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.killed {
		return ErrKilled
	}
	if l.closed {
		return ErrExited
	}
	select {
	case l.queue <- c:
		return nil
	default:
		return fmt.Errorf("%w: %d requests are queued already", ErrTimeout, cap(l.queue))
	}
}

// Notices returns the messages that the client sends without a request, and late replies.
func (l *Local) Notices() <-chan Reply { return l.notices }

// Kill ends the client as a crash does: requests in progress get no reply, and holds are not released. The
// caller must cut its connections first, because the code of the lock still runs until it notices.
func (l *Local) Kill() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.killed {
		l.killed = true
		close(l.dead)
		l.shutdown()
	}
	return nil
}

// Err is ErrKilled after Kill, else nil.
func (l *Local) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.killed {
		return ErrKilled
	}
	return nil
}

// shutdown starts the end of the client; l.mu is held.
func (l *Local) shutdown() {
	if !l.closed {
		l.closed = true
		close(l.queue)
		l.cancel()
	}
}

// Close cancels requests in progress, closes every connection and waits for that until ctx ends.
// Notices must be read meanwhile.
func (l *Local) Close(ctx context.Context) error {
	l.mu.Lock()
	l.shutdown()
	l.mu.Unlock()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("closing a client: %w", ctx.Err())
	}
}
