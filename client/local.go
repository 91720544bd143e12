package client

import (
	"context"
	"fmt"
	"sync"
)

// Local is a native client in the harness's own process: for backends where
// time is virtual and a stopped client is one that nothing leaves or reaches.
// It obeys one request at a time, like a client behind standard input.
type Local struct {
	native *Native
	turns  Hooks
	queue  chan *call
	raw    chan Reply // notices on their way
	out    chan Reply
	end    context.CancelFunc
	idle   chan struct{} // closed when the lock is closed
	gone   chan struct{} // closed when the last notice was told
	dead   chan struct{} // closed by Kill

	mu     sync.Mutex
	closed bool
	killed bool
}

// errand is a request and whoever waits for its answer.
type call struct {
	request Request
	reply   chan Reply // 1 deep

	mu   sync.Mutex
	late bool // Do has given up
	done bool // the answer was given
}

var _ Client = (*Local)(nil)

// localNotices is how many notices may wait for their reader before the lock
// itself has to wait.
const localNotices = 256

// Hooks wait for a moment at which nobody else acts, and for as long as the
// client stands still.
type Hooks struct {
	BeforeStep   func() // before a request is begun, and before its answer is given
	BeforeNotice func() // before a notice is told
}

// NewLocal is a client whose promises are stamped by mono. Its lock is row, or
// with nil the one of the catalogue that init names.
func NewLocal(mono func() int64, turns Hooks, row *Spec) *Local {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Local{
		turns: turns, queue: make(chan *call, 16), raw: make(chan Reply, localNotices), out: make(chan Reply, noticeQueue),
		end: cancel, idle: make(chan struct{}), gone: make(chan struct{}), dead: make(chan struct{}),
	}
	l.native = NewNative(l.notify, mono)
	if row != nil {
		l.native.lookup = func(string) (Spec, error) { return *row, nil }
	}
	go l.serve(ctx)
	go l.forward()
	return l
}

// work does one errand after the other until Close.
func (l *Local) serve(ctx context.Context) {
	for e := range l.queue {
		l.turns.BeforeStep()
		reply := l.native.Handle(ctx, e.request)
		reply.ID = e.request.ID
		l.turns.BeforeStep()
		l.reply(e, reply)
	}
	l.native.Handle(context.WithoutCancel(ctx), Request{Op: Close})
	close(l.idle)
}

func (l *Local) notify(r Reply) {
	select {
	case l.raw <- r:
	case <-l.gone: // a lock that tells after it was closed is not heard
	}
}

// give answers e, or, if nobody waits any more, says so late.
func (l *Local) reply(e *call, reply Reply) {
	e.mu.Lock()
	late := e.late
	e.done = true
	e.mu.Unlock()
	if late {
		reply.Event, reply.Op, reply.Key = EventLate, e.request.Op, e.request.Key
		l.notify(reply)
		return
	}
	e.reply <- reply
}

// tell passes notices on, one at a time, until the lock is closed.
func (l *Local) forward() {
	defer close(l.gone)
	defer close(l.out)
	pass := func(r Reply) {
		l.turns.BeforeNotice()
		l.out <- r
	}
	for {
		select {
		case r := <-l.raw:
			pass(r)
		case <-l.idle:
			for len(l.raw) > 0 {
				pass(<-l.raw)
			}
			return
		case <-l.dead:
			return
		}
	}
}

// Do has the client do r and waits for its answer. If ctx ends first the error
// is ErrTimeout, and the answer that comes later goes to Notices as [EventLate].
func (l *Local) Do(ctx context.Context, r Request) (Reply, error) {
	e := &call{request: r, reply: make(chan Reply, 1)}
	if err := l.enqueue(e); err != nil {
		return Reply{ID: r.ID}, err
	}
	select {
	case reply := <-e.reply:
		return reply, nil
	case <-l.dead:
		return Reply{ID: r.ID}, ErrExited
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return <-e.reply, nil
	}
	e.late = true
	return Reply{ID: r.ID}, fmt.Errorf("%w: %s: %w", ErrTimeout, r.Op, ctx.Err())
}

func (l *Local) enqueue(e *call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrExited
	}
	select {
	case l.queue <- e:
		return nil
	default:
		return fmt.Errorf("%w: %d requests wait already", ErrTimeout, cap(l.queue))
	}
}

// Notices is what the client says of its own accord.
func (l *Local) Notices() <-chan Reply { return l.out }

// Kill ends the client as a crash does: what is under way is never answered, and
// nobody gives back what it held. Whoever calls it has cut its connections off
// before, because the code of the lock still runs until it finds that out.
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

// shut begins the end. l.mu is held.
func (l *Local) shutdown() {
	if !l.closed {
		l.closed = true
		close(l.queue)
		l.end()
	}
}

// Close ends what is under way, gives up every connection and waits for that
// until ctx ends. Somebody has to read Notices meanwhile.
func (l *Local) Close(ctx context.Context) error {
	l.mu.Lock()
	l.shutdown()
	l.mu.Unlock()
	select {
	case <-l.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("closing a client: %w", ctx.Err())
	}
}
