package workloads

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// lockFake is a lock in memory that several clients share.
type lockFake struct {
	mu     sync.Mutex
	owner  map[string]string
	free   chan struct{} // closed, and replaced, at every release
	tokens uint64
}

func newLockFake() *lockFake {
	return &lockFake{owner: map[string]string{}, free: make(chan struct{})}
}

// clientFake is a client of a lockFake. script replies to the n-th request, counted from 1; if it returns nil, the
// lock replies.
type clientFake struct {
	lock     *lockFake
	script   func(n int, r client.Request) (*client.Reply, error)
	notices  chan client.Reply
	requests []client.Request
	closed   sync.Once
}

func newClientFake(l *lockFake) *clientFake {
	return &clientFake{lock: l, notices: make(chan client.Reply, 8),
		script: func(int, client.Request) (*client.Reply, error) { return nil, nil }}
}

func (c *clientFake) Do(ctx context.Context, r client.Request) (client.Reply, error) {
	c.requests = append(c.requests, r)
	if reply, err := c.script(len(c.requests), r); reply != nil || err != nil {
		if reply == nil {
			reply = &client.Reply{}
		}
		return *reply, err
	}
	switch r.Op {
	case history.Acquire:
		return c.lock.acquire(ctx, r)
	case history.Release:
		return c.lock.release(r), nil
	case history.Work:
		select {
		case <-time.After(r.Work):
			return client.Reply{Type: "ok"}, nil
		case <-ctx.Done():
			return client.Reply{}, fmt.Errorf("%w: %w", client.ErrTimeout, ctx.Err())
		}
	}
	return client.Reply{Type: "ok"}, nil
}

func (c *clientFake) Notices() <-chan client.Reply { return c.notices }

func (c *clientFake) Close(context.Context) error {
	c.closed.Do(func() { close(c.notices) })
	return nil
}

func (l *lockFake) acquire(ctx context.Context, r client.Request) (client.Reply, error) {
	timeout := time.After(r.Wait)
	for {
		l.mu.Lock()
		if l.owner[r.Key] == "" {
			l.owner[r.Key] = r.Owner
			l.tokens++
			reply := client.Reply{Type: "ok", Token: l.tokens, Count: 1, ValidMS: float64(r.Lease) / float64(time.Millisecond)}
			l.mu.Unlock()
			return reply, nil
		}
		free := l.free
		l.mu.Unlock()
		select {
		case <-free:
		case <-timeout:
			return client.Reply{Type: "fail", Code: "held"}, nil
		case <-ctx.Done():
			return client.Reply{}, fmt.Errorf("%w: %w", client.ErrTimeout, ctx.Err())
		}
	}
}

func (l *lockFake) release(r client.Request) client.Reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner[r.Key] != r.Owner {
		return client.Reply{Type: "fail", Code: "not-held"}
	}
	delete(l.owner, r.Key)
	close(l.free)
	l.free = make(chan struct{})
	return client.Reply{Type: "ok"}
}

// tape is a history in memory.
type tape struct {
	*history.Recorder
	text   bytes.Buffer
	events []history.Event
}

func newTape() *tape {
	t := &tape{}
	start := time.Now()
	t.Recorder = history.NewRecorder(&t.text, func() time.Duration { return time.Since(start) })
	t.OnEvent = func(e history.Event) { t.events = append(t.events, e) }
	return t
}

// words are the events, such as "0 acquire ok".
func (t *tape) words() []string {
	var all []string
	for _, e := range t.events {
		w := fmt.Sprintf("%d %s %s", e.Process, e.F, e.Type)
		if e.Error != nil {
			w += " " + e.Error.Code
		}
		all = append(all, w)
	}
	return all
}

// env is client n of total, with short durations.
func env(c client.Client, r Recorder, n, total int, seed uint64) Env {
	return Env{
		Params:  Params{Clients: total, Keys: 1, Hold: 10 * time.Millisecond, Wait: time.Second, Lease: time.Second},
		Session: NewSession(c, r, n, total, func() int64 { return time.Now().UnixNano() }),
		Guard:   NewGuard(false), Rand: rand.New(rand.NewPCG(seed, uint64(n))),
		Until: time.Now().Add(time.Hour),
	}
}

// stopAfter is closed at the n-th request.
func stopAfter(c *clientFake, n int) <-chan struct{} {
	stop := make(chan struct{})
	before := c.script
	c.script = func(i int, r client.Request) (*client.Reply, error) {
		if i == n {
			close(stop)
		}
		return before(i, r)
	}
	return stop
}

// built is the history of a tape; it fails t if that is not well-formed.
func built(t *testing.T, tape *tape) *history.History {
	t.Helper()
	h, err := history.ReadAll(&tape.text, "tape")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range h.Problems {
		t.Errorf("the history is not well-formed: %+v", p)
	}
	return h
}

// silent is a client that never replies.
type silent struct{ *clientFake }

func (silent) Do(ctx context.Context, r client.Request) (client.Reply, error) {
	<-ctx.Done()
	return client.Reply{}, fmt.Errorf("%w: %s: %w", client.ErrTimeout, r.Op, ctx.Err())
}
