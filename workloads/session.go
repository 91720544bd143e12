package workloads

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// How much longer than the operation itself the harness waits for a reply, before the outcome is unknown.
const (
	replyTimeout = 5 * time.Second
	workTimeout  = 60 * time.Second // a client that was paused during its critical section is late
)

// Session is one client in the history: all operations go through it and are recorded on both ends. It retires the
// process after an unknown outcome. One goroutine may execute operations while another one runs Listen.
type Session struct {
	client       client.Client
	record       Recorder
	number       int // of the client, from 0
	clients      int
	mono         func() int64
	allowedPause time.Duration

	mu       sync.Mutex
	process  history.Process
	attempts int
	exited   bool // no more operations
	closing  bool
}

// Hold is a hold, as the harness knows it.
type Hold struct {
	Key     string
	Owner   string
	Token   uint64
	Permits int
}

// NewSession is the session of client n of clients. mono is the clock of Reply.MonoNS.
func NewSession(c client.Client, r Recorder, n, clients int, mono func() int64) *Session {
	return &Session{client: c, record: r, number: n, clients: clients, process: history.Process(n), mono: mono}
}

// AllowPause makes the session wait d longer for every reply, because the plan may pause the client for so long. Call
// it before the first operation.
func (s *Session) AllowPause(d time.Duration) { s.allowedPause = d }

// Alive is false after the client has exited or violated the protocol.
func (s *Session) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.exited
}

// Process is the current process number of the client.
func (s *Session) Process() history.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Closing announces that the client is about to be closed, so that its exit is not recorded as a crash.
func (s *Session) Closing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
}

// Acquire requests a lock. Each attempt has an owner of its own, so that what a failed attempt left behind cannot be
// taken for the hold of another.
func (s *Session) Acquire(ctx context.Context, a client.Acquire) (Hold, history.Type) {
	a.Owner = s.nextOwner()
	v := &history.Value{
		Owner: a.Owner, Lease: a.Lease, Wait: a.Wait, Mode: a.Mode, Permits: a.Permits, Limit: a.Limit,
	}
	reply, t := s.do(ctx, client.Request{Op: history.Acquire, Acquire: a}, v, a.Wait+replyTimeout)
	return Hold{Key: a.Key, Owner: a.Owner, Permits: a.Permits, Token: reply.Token}, t
}

// Work spends d in the critical section, inside the client.
func (s *Session) Work(ctx context.Context, h Hold, d time.Duration) history.Type {
	r := client.Request{Op: history.Work, Acquire: client.Acquire{Key: h.Key, Owner: h.Owner}, Work: d}
	_, t := s.do(ctx, r, &history.Value{Owner: h.Owner, Work: d}, d+workTimeout)
	return t
}

// Release releases h.
func (s *Session) Release(ctx context.Context, h Hold) history.Type {
	r := client.Request{Op: history.Release, Acquire: client.Acquire{Key: h.Key, Owner: h.Owner, Permits: h.Permits}}
	_, t := s.do(ctx, r, &history.Value{Owner: h.Owner, Token: h.Token, Permits: h.Permits}, 3*replyTimeout)
	return t
}

// Touch writes to the guarded resource for the holder of h, which has read the counter as read.
func (s *Session) Touch(h Hold, g *Guard, read int64) {
	p := s.Process()
	g.Write(h.Key, read, h.Token, func(v history.TouchValue, accepted bool) {
		s.record.Touch(p, h.Key, &history.Value{Owner: h.Owner, Token: h.Token, Touch: &v}, accepted)
	})
}

// Listen records the notices of the client until it has exited.
func (s *Session) Listen() {
	for r := range s.client.Notices() {
		v := &history.Value{Owner: r.Owner}
		var f string
		switch r.Event {
		case "lost":
			f = history.Lost
		case "renewed":
			f, v.Valid = history.Renewed, r.ValidFor(0, s.mono())
		default:
			f, v.Owner = "late-"+r.Op, ""
		}
		s.record.Note(s.Process(), f, r.Key, v)
	}
	s.exit()
}

// do sends one operation, records it on both ends, and turns the reply, or the lack of one, into ok, fail or info.
// The outcome is unknown after timeout.
func (s *Session) do(
	ctx context.Context, r client.Request, v *history.Value, timeout time.Duration,
) (client.Reply, history.Type) {
	inv := s.record.Invoke(s.Process(), r.Op, r.Key, v)
	ctx, cancel := context.WithTimeout(ctx, timeout+s.allowedPause)
	defer cancel()
	start := time.Now()
	reply, err := s.client.Do(ctx, r)
	if err != nil {
		s.record.Complete(inv, history.Info, nil, failure(err))
		if errors.Is(err, client.ErrExited) || errors.Is(err, client.ErrProtocol) {
			s.exit()
		}
		s.retire()
		return client.Reply{}, history.Info
	}
	now := s.mono()
	took := time.Since(start) // after now: the request is never younger than the promise
	t := client.TypeOf(reply)
	got := &history.Value{Owner: v.Owner, Token: reply.Token, Count: reply.Count, Valid: reply.ValidFor(took, now)}
	var e *history.Error
	if t != history.OK {
		e = &history.Error{Code: reply.Code, Text: reply.Error}
	}
	s.record.Complete(inv, t, got, e)
	if t == history.Info {
		s.retire()
	}
	return reply, t
}

func failure(err error) *history.Error {
	code := "client-error"
	switch {
	case errors.Is(err, client.ErrExited):
		code = "client-exited"
	case errors.Is(err, client.ErrProtocol):
		code = "client-protocol"
	case errors.Is(err, client.ErrTimeout):
		code = "client-timeout"
	}
	return &history.Error{Code: code, Text: err.Error()}
}

// retire gives the client a new process number: a process has one operation at a time, and one of unknown outcome is
// never complete.
func (s *Session) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process += history.Process(s.clients)
}

// exit records the crash of a client that was not closed, once.
func (s *Session) exit() {
	s.mu.Lock()
	crashed, p := !s.exited && !s.closing, s.process
	s.exited = true
	s.mu.Unlock()
	if crashed {
		s.record.Note(p, history.Crash, "", nil)
	}
}

func (s *Session) nextOwner() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts++
	return fmt.Sprintf("c%d-%d", s.number, s.attempts)
}
