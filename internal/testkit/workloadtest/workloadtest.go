// Package workloadtest has fakes for tests of workloads: a lock in memory, its clients, whose replies a test can
// script, and a history in memory.
package workloadtest

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
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// Lock is a lock in memory that several clients share.
type Lock struct {
	mu     sync.Mutex
	owner  map[string]string
	free   chan struct{} // closed, and replaced, at every release
	tokens uint64
}

// NewLock is a lock that nobody holds.
func NewLock() *Lock {
	return &Lock{owner: map[string]string{}, free: make(chan struct{})}
}

// GiveTo has an owner hold key.
func (l *Lock) GiveTo(owner, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owner[key] = owner
}

// Client is a client of a Lock. Script replies to the n-th request, counted from 1; if it returns nil, the lock
// replies.
type Client struct {
	lock     *Lock
	Script   func(n int, r client.Request) (*client.Reply, error)
	Notified chan client.Reply
	Requests []client.Request
	closed   sync.Once
}

// NewClient is a client of l without a script.
func NewClient(l *Lock) *Client {
	return &Client{lock: l, Notified: make(chan client.Reply, 8),
		Script: func(int, client.Request) (*client.Reply, error) { return nil, nil }}
}

// Do implements client.Client.
func (c *Client) Do(ctx context.Context, r client.Request) (client.Reply, error) {
	c.Requests = append(c.Requests, r)
	if reply, err := c.Script(len(c.Requests), r); reply != nil || err != nil {
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

// Notices implements client.Client: the notices that a test sends to Notified.
func (c *Client) Notices() <-chan client.Reply { return c.Notified }

// Close implements client.Client.
func (c *Client) Close(context.Context) error {
	c.closed.Do(func() { close(c.Notified) })
	return nil
}

func (l *Lock) acquire(ctx context.Context, r client.Request) (client.Reply, error) {
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

func (l *Lock) release(r client.Request) client.Reply {
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

// Tape is a history in memory.
type Tape struct {
	*history.Recorder
	text   bytes.Buffer
	Events []history.Event
}

// NewTape is an empty history that begins now.
func NewTape() *Tape {
	t := &Tape{}
	start := time.Now()
	t.Recorder = history.NewRecorder(&t.text, func() time.Duration { return time.Since(start) })
	t.OnEvent = func(e history.Event) { t.Events = append(t.Events, e) }
	return t
}

// Words are the events, such as "0 acquire ok".
func (t *Tape) Words() []string {
	var all []string
	for _, e := range t.Events {
		w := fmt.Sprintf("%d %s %s", e.Process, e.F, e.Type)
		if e.Error != nil {
			w += " " + e.Error.Code
		}
		all = append(all, w)
	}
	return all
}

// Env is client n of total, with short durations.
func Env(c client.Client, r session.Recorder, n, total int, seed uint64) workload.Env {
	end := time.Now().Add(time.Hour)
	return workload.Env{
		Params:  workload.Params{Clients: total, Keys: 1, Hold: 10 * time.Millisecond, Wait: time.Second, Lease: time.Second},
		Session: session.New(c, r, n, total, func() int64 { return time.Now().UnixNano() }),
		Guard:   session.NewGuard(false), Rand: rand.New(rand.NewPCG(seed, uint64(n))),
		Left: func() time.Duration { return time.Until(end) },
	}
}

// StopAfter is closed at the n-th request.
func StopAfter(c *Client, n int) <-chan struct{} {
	stop := make(chan struct{})
	before := c.Script
	c.Script = func(i int, r client.Request) (*client.Reply, error) {
		if i == n {
			close(stop)
		}
		return before(i, r)
	}
	return stop
}

// History is the history on the tape; it fails tb if that is not well-formed.
func (t *Tape) History(tb testing.TB) *history.History {
	tb.Helper()
	h, err := history.ReadAll(&t.text, "tape")
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range h.Problems {
		tb.Errorf("the history is not well-formed: %+v", p)
	}
	return h
}

// Silent is a client that never replies.
type Silent struct{ *Client }

// Do waits until ctx has ended.
func (Silent) Do(ctx context.Context, r client.Request) (client.Reply, error) {
	<-ctx.Done()
	return client.Reply{}, fmt.Errorf("%w: %s: %w", client.ErrTimeout, r.Op, ctx.Err())
}

// Latch is a latch that can be armed again.
type Latch struct{ Count, Generation int }

// Reply is a script of a Client.
func (l *Latch) Reply(_ int, r client.Request) (*client.Reply, error) {
	reply := &client.Reply{Type: "ok", Token: uint64(l.Generation), Count: l.Count}
	switch {
	case r.Op == history.Arm && l.Count > 0:
		return &client.Reply{Type: "fail", Code: "armed"}, nil
	case r.Op == history.Arm:
		l.Count = r.Count
		l.Generation++
		reply.Token, reply.Count = uint64(l.Generation), r.Count
	case r.Op == history.CountDown:
		l.Count = max(0, l.Count-1)
		reply.Count = l.Count
	case l.Count > 0:
		return &client.Reply{Type: "fail", Code: "timeout"}, nil
	}
	return reply, nil
}
