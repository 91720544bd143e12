// Package session sends the operations of one client of a workload and records both ends of each, and has the resource
// that the lock guards. It is not a promise. Read [Session] first, then [Guard].
package session

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
	workTimeout  = 60 * time.Second     // a client that was paused during its critical section is late
	validError   = 5 * time.Millisecond // how much of a validity may pass between the lock's answer and the reply
)

// Recorder is the part of history.Recorder that workloads use.
type Recorder interface {
	Invoke(p history.Process, f, key string, v *history.Value) history.Event
	Complete(inv history.Event, t history.Type, v *history.Value, e *history.Error) history.Event
	Note(p history.Process, f, key string, v *history.Value) history.Event
	Touch(p history.Process, key string, v *history.Value, accepted bool) history.Event
}

// Session is one client in the history: all operations go through it and are recorded on both ends. It retires the
// process after an unknown outcome. One goroutine may execute operations while another one runs Listen.
type Session struct {
	client       client.Client
	record       Recorder
	number       int // of the client, from 0
	clients      int
	mono         func() int64
	since        int64 // by mono: when the session began
	allowedPause time.Duration
	unleased     bool
	valid        validity

	mu       sync.Mutex
	process  history.Process
	attempts int
	exited   bool            // no more operations
	unasked  map[string]bool // new owners for which nothing has been requested
	asking   string          // one of them whose acquire has not returned
	early    []client.Reply  // notices about that owner, to be recorded after the grant
	gone     map[string]bool // owners of which a hold was reported as lost
	closing  bool
}

// Hold is a hold, as the harness knows it.
type Hold struct {
	Key     string
	Keys    []string // of a hold of several; nil: Key alone
	Owner   string
	Mode    string
	Token   uint64
	Permits int
	Lease   time.Duration // that was requested, whether the lock has leases or not
	Valid   time.Duration // for how long it was promised when it was granted; 0: without an end
}

// Answer is the reply to an operation: its outcome and its details.
type Answer struct {
	Outcome history.Type
	Token   uint64 // or generation of a latch
	Count   int
	Permits int           // granted by a drain
	Valid   time.Duration // promised from now on; 0: the reply has none
	Code    string        // of the error
}

// New is the session of client n of clients. mono is the clock of Reply.MonoNS.
func New(c client.Client, r Recorder, n, clients int, mono func() int64) *Session {
	return &Session{client: c, record: r, number: n, clients: clients, process: history.Process(n), mono: mono,
		since: mono(), unasked: make(map[string]bool)}
}

// Restarted is the session of the same client after its process has exited and another one, c, was started: it uses the
// same names of owners, from the first one on.
func (s *Session) Restarted(c client.Client) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := New(c, s.record, s.number, s.clients, s.mono)
	next.since, next.allowedPause, next.unleased = s.since, s.allowedPause, s.unleased
	if s.valid.holds != nil {
		next.WatchValidity()
	}
	next.process = s.process + history.Process(s.clients) // an operation of the dead process may have no end
	return next
}

// AllowPause makes the session wait d longer for every reply, because the plan may pause the client for so long. Call
// it before the first operation.
func (s *Session) AllowPause(d time.Duration) { s.allowedPause = d }

// WithoutLeases makes the session request no leases, because the lock has none (promise unleased): a history in which
// one was requested says that the hold ends with it. Call it before the first operation.
func (s *Session) WithoutLeases() { s.unleased = true }

// Alive is false after the client has exited or violated the protocol.
func (s *Session) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.exited
}

// Number is the number of the client, from 0.
func (s *Session) Number() int { return s.number }

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

// Acquire requests a lock. Unless the request names an owner, the attempt has one of its own, so that leftovers of a
// failed attempt cannot be taken for the hold of another.
func (s *Session) Acquire(ctx context.Context, a client.Acquire) (Hold, history.Type) {
	h, answer := s.request(ctx, history.Acquire, a)
	return h, answer.Outcome
}

// Try requests a lock if it is free.
func (s *Session) Try(ctx context.Context, a client.Acquire) (Hold, Answer) {
	a.Wait = 0
	return s.request(ctx, history.Try, a)
}

func (s *Session) request(ctx context.Context, op string, a client.Acquire) (Hold, Answer) {
	return s.send(ctx, client.Request{Op: op, Acquire: a})
}

// send sends an acquire or a try.
func (s *Session) send(ctx context.Context, r client.Request) (Hold, Answer) {
	a := &r.Acquire
	if a.Owner == "" {
		a.Owner = s.NewOwner()
	}
	s.ask(a.Owner)
	lease := a.Lease
	if s.unleased {
		a.Lease = 0
	}
	answer := s.perform(ctx, r)
	for _, notice := range s.ask("") {
		s.note(notice)
	}
	h := Hold{Key: a.Key, Keys: a.Keys, Owner: a.Owner, Mode: a.Mode, Permits: a.Permits, Token: answer.Token,
		Lease: lease, Valid: answer.Valid}
	if r.Drain {
		h.Permits = answer.Permits
	}
	return h, answer
}

// Granted is false for the zero value, which stands for a request that was not granted. Holds that a [Session] returns
// have an owner.
func (h Hold) Granted() bool { return h.Owner != "" }

// Request is a request that names h.
func (h Hold) Request() client.Acquire {
	return client.Acquire{Key: h.Key, Keys: h.Keys, Owner: h.Owner, Mode: h.Mode, Permits: h.Permits}
}

// Work spends d in the critical section, inside the client.
func (s *Session) Work(ctx context.Context, h Hold, d time.Duration) history.Type {
	a := client.Acquire{Key: h.Key, Owner: h.Owner}
	return s.perform(ctx, client.Request{Op: history.Work, Acquire: a, Work: d}).Outcome
}

// Release releases h.
func (s *Session) Release(ctx context.Context, h Hold) Answer { return s.end(ctx, h, client.Request{}) }

// end releases h as r says.
func (s *Session) end(ctx context.Context, h Hold, r client.Request) Answer {
	r.Op, r.Acquire = history.Release, h.Request()
	v := valueOf(r)
	v.Token = h.Token // which the lock does not need
	return s.do(ctx, r, v)
}

// ReleaseCanceled releases h for a caller that has given up, if the lock states release-survives-cancel.
func (s *Session) ReleaseCanceled(ctx context.Context, h Hold) Answer {
	return s.end(ctx, h, client.Request{Canceled: true})
}

// ReleaseFailed releases h, which is a scoped hold, because its block of code has ended with an error.
func (s *Session) ReleaseFailed(ctx context.Context, h Hold) Answer {
	return s.end(ctx, h, client.Request{Failed: true})
}

// Renew extends the lease of h to lease; 0: the lease with which the lock renews it.
func (s *Session) Renew(ctx context.Context, h Hold, lease time.Duration) Answer {
	if s.noteEnded(); s.valid.isOver(h) {
		return Answer{Outcome: history.Fail}
	}
	if lease > 0 {
		lease = max(lease, s.valid.left(h))
	}
	a := h.Request()
	a.Lease = lease
	return s.perform(ctx, client.Request{Op: history.Renew, Acquire: a})
}

// Listen records the notices of the client until it has exited.
func (s *Session) Listen() {
	for r := range s.client.Notices() {
		if !s.isEarly(r) {
			s.note(r)
		}
	}
	s.exit(nil)
}

// note records a notice.
func (s *Session) note(r client.Reply) {
	now := s.mono()
	v := &history.Value{Owner: r.Owner, Age: r.Age(s.since, now)}
	var f string
	switch r.Event {
	case "lost":
		f, v.Count, v.Mode = history.Lost, r.Count, r.Mode
		s.noteLost(r.Owner)
	case "renewed":
		f, v.Valid = history.Renewed, r.ValidFor(0, now)
		s.valid.renewed(r.Key, r.Owner, v.Valid)
	default:
		f, v = history.LatePrefix+r.Op, &history.Value{}
	}
	s.record.Note(s.Process(), f, r.Key, v)
}

// ask notes the owner of the acquire in flight, if it is new, and returns the notices that came about the one before.
func (s *Session) ask(owner string) (early []client.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if early, s.early, s.asking = s.early, nil, ""; s.unasked[owner] {
		delete(s.unasked, owner)
		s.asking = owner
	}
	return early
}

// isEarly keeps a notice about an owner whose acquire has not returned. A harness that was stopped reads both at once,
// in any order, and the history has to have the grant first.
func (s *Session) isEarly(r client.Reply) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Owner == "" || r.Owner != s.asking {
		return false
	}
	s.early = append(s.early, r)
	return true
}

// valueOf is the history's value for a request.
func valueOf(r client.Request) *history.Value {
	return &history.Value{
		Owner: r.Owner, Token: r.Token, Lease: r.Lease, Wait: r.Wait, Mode: r.Mode, Permits: r.Permits, Limit: r.Limit,
		Work: r.Work, Close: r.Close, Count: r.Count,
	}
}

// timeoutOf is how long the harness waits for the reply to a request.
func timeoutOf(r client.Request) time.Duration {
	switch r.Op {
	case history.Acquire, history.Try, history.Await:
		return r.Wait + replyTimeout
	case history.Work:
		return r.Work + workTimeout
	case history.Renew, history.Guard, history.Inspect, history.InspectOwner, history.CountWaiters:
		return replyTimeout
	}
	return 3 * replyTimeout
}

// perform is do for an operation that the history has as it is sent.
func (s *Session) perform(ctx context.Context, r client.Request) Answer {
	return s.do(ctx, r, valueOf(r))
}

// do sends one operation, records it on both ends, as v, and turns the reply, or the lack of one, into ok, fail or
// info. The outcome is unknown after a time. A client that has exited executes nothing, and nothing is recorded.
func (s *Session) do(ctx context.Context, r client.Request, v *history.Value) Answer {
	if !s.Alive() {
		return Answer{Outcome: history.Info}
	}
	s.noteEnded()
	events := s.invoke(r, v)
	ctx, cancel := context.WithTimeout(ctx, timeoutOf(r)+s.allowedPause)
	defer cancel()
	start := time.Now()
	reply, err := s.client.Do(ctx, r)
	if err != nil {
		s.complete(events, history.Info, nil, failure(err))
		if errors.Is(err, client.ErrExited) || errors.Is(err, client.ErrProtocol) {
			s.exit(err)
		}
		s.retire()
		return Answer{Outcome: history.Info}
	}
	now := s.mono()
	took := time.Since(start) // after now: the request is never younger than the promise
	t := client.TypeOf(reply)
	got := &history.Value{Owner: v.Owner, Token: reply.Token, Count: reply.Count, Valid: reply.ValidFor(took, now),
		Undone: reply.Undone && t != history.Info}
	had := time.Duration(reply.ValidMS * float64(time.Millisecond))
	if r.Drain && t == history.OK {
		got.Permits = max(1, reply.Permits)
	}
	if r.Op == history.Inspect && t == history.OK {
		got.Owner, got.Valid = reply.Owner, had // the lease that is shown ends then, or earlier
	} else if t == history.OK && had < -validError {
		got.Age = max(1, had-got.Valid) // the client itself replied after the end
	}
	var e *history.Error
	if t != history.OK {
		e = &history.Error{Code: reply.Code, Text: reply.Error}
	}
	s.complete(events, t, got, e)
	if t == history.Info {
		s.retire()
	}
	answer := Answer{
		Outcome: t, Token: reply.Token, Count: reply.Count, Permits: got.Permits, Valid: got.Valid, Code: reply.Code,
	}
	s.valid.watched(r, answer)
	return answer
}

// invoke records an invocation: one event for each key, of which the first has the token.
func (s *Session) invoke(r client.Request, v *history.Value) []history.Event {
	p := s.Process()
	events := []history.Event{s.record.Invoke(p, r.Op, r.Key, v)}
	for i := 1; i < len(r.Keys); i++ {
		part := *v
		part.Part, part.Token = true, 0
		events = append(events, s.record.Invoke(p, r.Op, r.Keys[i], &part))
	}
	return events
}

// complete records the completion of the events of invoke. A reply about several keys has the token of the first, and
// the hold count of any.
func (s *Session) complete(events []history.Event, t history.Type, v *history.Value, e *history.Error) {
	if len(events) > 1 && e != nil && (e.Code == history.CodeHeld || e.Code == "timeout") {
		e.Code = history.CodeOneHeld
	}
	for i, event := range events {
		one := v
		if v != nil && len(events) > 1 {
			part := *v
			if part.Count = 0; i > 0 {
				part.Token = 0
			}
			one = &part
		}
		s.record.Complete(event, t, one, e)
	}
}

// retire gives the client a new process number: a process has one operation at a time, and one of unknown outcome is
// never complete.
func (s *Session) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process += history.Process(s.clients)
}

// NewOwner is the name of an owner that nobody has used before.
func (s *Session) NewOwner() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts++
	owner := fmt.Sprintf("c%d-%d", s.number, s.attempts)
	s.unasked[owner] = true
	return owner
}
