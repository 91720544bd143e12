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

// lockFake is an in-memory lock that several clients share.
type lockFake struct {
	mu     sync.Mutex
	owner  map[string]string
	free   chan struct{} // closed, and replaced, at every release
	tokens uint64
}

func newLockFake() *lockFake {
	return &lockFake{owner: map[string]string{}, free: make(chan struct{})}
}

// clientFake is a [client.Client] of it. script may answer instead, for the
// n-th request (from 1); nil goes on to the lock.
type clientFake struct {
	lock    *lockFake
	script  func(n int, r client.Request) (*client.Reply, error)
	notices chan client.Reply
	asked   []client.Request
	gone    sync.Once
}

func newClientFake(l *lockFake) *clientFake {
	return &clientFake{lock: l, notices: make(chan client.Reply, 8),
		script: func(int, client.Request) (*client.Reply, error) { return nil, nil }}
}

func (c *clientFake) Do(ctx context.Context, r client.Request) (client.Reply, error) {
	c.asked = append(c.asked, r)
	if reply, err := c.script(len(c.asked), r); reply != nil || err != nil {
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
	c.gone.Do(func() { close(c.notices) })
	return nil
}

func (l *lockFake) acquire(ctx context.Context, r client.Request) (client.Reply, error) {
	late := time.After(r.Wait)
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
		case <-late:
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

// tape is a history that a test can read again.
type tape struct {
	*history.Recorder
	text   bytes.Buffer
	events []history.Event
}

func newTape() *tape {
	t := &tape{}
	began := time.Now()
	t.Recorder = history.NewRecorder(&t.text, func() time.Duration { return time.Since(began) })
	t.OnEvent = func(e history.Event) { t.events = append(t.events, e) }
	return t
}

// words are the events: "0 acquire ok".
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

// env is client n of total, with default parameters but for short times.
func env(c client.Client, r Recorder, n, total int, seed uint64) Env {
	return Env{
		Params:  Params{Clients: total, Keys: 1, Hold: 10 * time.Millisecond, Wait: time.Second, Lease: time.Second},
		Session: NewSession(c, r, n, total, func() int64 { return time.Now().UnixNano() }),
		Guard:   NewGuard(false), Rand: rand.New(rand.NewPCG(seed, uint64(n))),
		Until: time.Now().Add(time.Hour),
	}
}

// stopAfter is a stop that comes when the client has been asked n times.
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

// built pairs what was recorded and fails the test if it is not well-formed.
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

// silent is a client that never answers.
type silent struct{ *clientFake }

func (silent) Do(ctx context.Context, r client.Request) (client.Reply, error) {
	<-ctx.Done()
	return client.Reply{}, fmt.Errorf("%w: %s: %w", client.ErrTimeout, r.Op, ctx.Err())
}
