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

// How long the harness waits for an answer beyond what the operation may take
// by itself, before it calls the outcome unknown.
const (
	patience     = 5 * time.Second
	workPatience = 60 * time.Second // a stopped client is late, and has to be waited for
)

// Session is one client with its place in the history: every operation goes
// through it and is recorded on both ends. It retires the process after an
// unknown outcome. One goroutine at a time may ask; Listen runs beside it.
type Session struct {
	client       client.Client
	record       Recorder
	number       int // of the client, from 0
	of           int // number of clients
	mono         func() int64
	allowedPause time.Duration

	mu       sync.Mutex
	process  history.Process
	attempts int
	gone     bool
	stopping bool
}

// Hold is one stay in a lock, as the harness knows it.
type Hold struct {
	Key     string
	Owner   string
	Token   uint64
	Permits int // as asked
}

// NewSession is client number n of total. mono is the clock that the client
// stamps its promises with.
func NewSession(c client.Client, r Recorder, n, total int, mono func() int64) *Session {
	return &Session{client: c, record: r, number: n, of: total, process: history.Process(n), mono: mono}
}

// AllowPause makes the session wait d longer for every answer: for so long the plan
// may have the client stand still. Call it before the first operation.
func (s *Session) AllowPause(d time.Duration) { s.allowedPause = d }

// Alive is false once the client has ended, answered nonsense or is being closed.
func (s *Session) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.gone
}

// Process is the number under which the client appears now.
func (s *Session) Process() history.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Closing tells the session that its client will end because it was asked to,
// so that this is not recorded as a crash.
func (s *Session) Closing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
}

// Acquire requests a lock. Each attempt has an owner of its own, so that what a failed attempt left behind cannot be
// taken for the hold of another.
func (s *Session) Acquire(ctx context.Context, a client.Acquire) (Hold, history.Type) {
	a.Owner = s.nextOwner()
	v := &history.Value{
		Owner: a.Owner, Lease: a.Lease, Wait: a.Wait, Mode: a.Mode, Permits: a.Permits, Limit: a.Limit,
	}
	reply, t := s.do(ctx, client.Request{Op: history.Acquire, Acquire: a}, v, a.Wait+patience)
	return Hold{Key: a.Key, Owner: a.Owner, Permits: a.Permits, Token: reply.Token}, t
}

// Work spends d in the critical section, inside the client.
func (s *Session) Work(ctx context.Context, h Hold, d time.Duration) history.Type {
	r := client.Request{Op: history.Work, Acquire: client.Acquire{Key: h.Key, Owner: h.Owner}, Work: d}
	_, t := s.do(ctx, r, &history.Value{Owner: h.Owner, Work: d}, d+workPatience)
	return t
}

// Renew extends the lease of h.
func (s *Session) Renew(ctx context.Context, h Hold, lease time.Duration) history.Type {
	r := client.Request{Op: history.Renew, Acquire: client.Acquire{Key: h.Key, Owner: h.Owner, Lease: lease}}
	_, t := s.do(ctx, r, &history.Value{Owner: h.Owner, Lease: lease}, patience)
	return t
}

// Release gives h back.
func (s *Session) Release(ctx context.Context, h Hold) history.Type {
	r := client.Request{Op: history.Release, Acquire: client.Acquire{Key: h.Key, Owner: h.Owner, Permits: h.Permits}}
	_, t := s.do(ctx, r, &history.Value{Owner: h.Owner, Token: h.Token, Permits: h.Permits}, 3*patience)
	return t
}

// Touch is the arrival of h's holder at the guarded resource, with the counter
// as it was read on entering.
func (s *Session) Touch(h Hold, g *Guard, read int64) {
	p := s.Process()
	g.Write(h.Key, read, h.Token, func(v history.TouchValue, accepted bool) {
		s.record.Touch(p, h.Key, &history.Value{Owner: h.Owner, Token: h.Token, Touch: &v}, accepted)
	})
}

// Listen records what the client says of its own accord until it is gone.
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
	s.mu.Lock()
	crashed := !s.gone && !s.stopping
	s.gone = true
	p := s.process
	s.mu.Unlock()
	if crashed {
		s.record.Note(p, history.Crash, "", nil)
	}
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
		s.retire(err)
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
		s.retire(nil)
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

// retire gives the client another process number: an operation of unknown
// outcome is open for ever, and a process has one operation at a time.
func (s *Session) retire(err error) {
	s.mu.Lock()
	crashed := !s.gone && !s.stopping && (errors.Is(err, client.ErrExited) || errors.Is(err, client.ErrProtocol))
	s.gone = s.gone || errors.Is(err, client.ErrExited) || errors.Is(err, client.ErrProtocol)
	p := s.process
	s.process += history.Process(s.of)
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
