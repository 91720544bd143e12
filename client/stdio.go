package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// Why a client did not reply. The outcome of the request is unknown after each of them;
// after ErrExited and ErrProtocol every further request fails as well. ErrKilled is an ErrExited.
var (
	ErrExited   = errors.New("client exited")
	ErrKilled   = fmt.Errorf("%w: it was killed", ErrExited) // by Kill, as a fault does
	ErrProtocol = errors.New("client violated the protocol")
	ErrTimeout  = errors.New("client did not reply in time")
	ErrRefused  = errors.New("client replied fail to init") // it keeps running
	// ErrUnfit: the client has started, and states that it lacks something that the scenario needs.
	ErrUnfit = errors.New("the scenario is not for this client")
	// ErrAlone is the error of an init of a client in a process of several, whose reply does not repeat the field client:
	// the program ignores that field, and would answer for all of them as one client. It is an ErrUnfit.
	ErrAlone = fmt.Errorf("%w: it puts several clients into one process (workload.per_process), and the reply to init "+
		"does not repeat the field client", ErrUnfit)
)

// EventLate is the Event of a reply that came after [ErrTimeout]. A late reply to "work" is
// a client that arrives late at the guarded resource.
const EventLate = "late"

// maxLine bounds one line of the protocol, in bytes.
const maxLine = 1 << 20

// noticeQueue is how many notices of one client are buffered: few, because there may be a thousand clients.
const noticeQueue = 32

// Proc is the operating-system process of a client.
type Proc interface {
	Stop() error     // SIGSTOP; returns when the process is stopped
	Continue() error // SIGCONT
	Kill() error     // SIGKILL; nil if the process has exited already
	PID() int        // 0 once the process has exited
}

// Stdio is the harness's end of the client protocol: it writes requests to a client's standard input and reads
// replies from its standard output. One process may host several clients; [Stdio.Client] returns each. Its methods
// may be called concurrently.
type Stdio struct {
	proc    Proc
	in      io.WriteCloser
	out     io.ReadCloser
	outbox  chan []byte   // requests for the goroutine that writes
	done    chan struct{} // closed at the end of the output, after the process was killed
	closing chan struct{} // closed when notices need no longer be delivered
	exit    sync.Once     // guards ended
	ended   error         // why the process ended, unless it violated the protocol

	mu      sync.Mutex
	nextID  int64
	waiting map[int64]*pending
	clients map[string]*StdioClient
	open    int   // clients that are not closed
	err     error // why the output ended
	closed  bool  // closing is closed
}

type pending struct {
	client *StdioClient
	op     string
	reply  chan Reply // 1 deep
	late   bool       // Do has timed out; guarded by Stdio.mu
}

// NewStdio talks to a client through its standard input and output, which it owns and closes. At the end of the output
// it kills proc: a client that closed its output must not keep renewing locks that the harness counts as given up.
func NewStdio(in io.WriteCloser, out io.ReadCloser, proc Proc) *Stdio {
	s := &Stdio{
		proc: proc, in: in, out: out, done: make(chan struct{}), closing: make(chan struct{}),
		outbox: make(chan []byte, 16), waiting: map[int64]*pending{}, clients: map[string]*StdioClient{},
	}
	go s.write()
	go s.read()
	return s
}

// Client returns the client of that name in this process; an only client has the empty name.
func (s *Stdio) Client(name string) *StdioClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.clients[name]; ok {
		return c
	}
	c := &StdioClient{stdio: s, name: name, notices: make(chan Reply, noticeQueue)}
	s.clients[name] = c
	s.open++
	if s.err != nil {
		close(c.notices)
	}
	return c
}

// StdioClient is one client behind a [Stdio].
type StdioClient struct {
	stdio   *Stdio
	name    string
	notices chan Reply
	closed  bool // Close was called; guarded by Stdio.mu
}

var (
	_ Client  = (*StdioClient)(nil)
	_ Stopper = (*StdioClient)(nil)
)

// Do sends r and waits for the reply. If ctx ends first the error is ErrTimeout, and a reply
// that comes later is delivered to Notices as [EventLate].
func (c *StdioClient) Do(ctx context.Context, r Request) (Reply, error) {
	s := c.stdio
	r.Client = c.name
	p := &pending{client: c, op: r.Op, reply: make(chan Reply, 1)}
	id, err := s.send(ctx, r, p)
	if err != nil {
		return Reply{ID: id}, err
	}
	select {
	case reply := <-p.reply:
		if r.Op == Init && c.name != "" && reply.Type == "ok" && reply.Client != c.name {
			return reply, ErrAlone
		}
		return reply, nil
	case <-s.done:
		select {
		case reply := <-p.reply: // the last line before the end of the output
			return reply, nil
		default:
			return Reply{ID: id}, s.reason()
		}
	case <-ctx.Done():
		if s.abandon(id, p) {
			return Reply{ID: id}, fmt.Errorf("%w: %s: %w", ErrTimeout, r.Op, ctx.Err())
		}
		return <-p.reply, nil
	}
}

// abandon makes the reply to id, should it still come, a late one. It reports false
// if the reply has come already.
func (s *Stdio) abandon(id int64, p *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[id] == nil {
		return false
	}
	p.late = true
	return true
}

// Notices returns the messages that the client sends without a request, and late replies. The channel is closed when
// the client has exited. It must be read: when its buffer is full, the replies of the whole process wait.
func (c *StdioClient) Notices() <-chan Reply { return c.notices }

// Stop stops the client's process, and with it every other client of that process.
func (c *StdioClient) Stop() error { return c.stdio.proc.Stop() }

// Continue resumes the client's process.
func (c *StdioClient) Continue() error { return c.stdio.proc.Continue() }

// PID is the client's process id, or 0 once the process has exited.
func (c *StdioClient) PID() int { return c.stdio.proc.PID() }

// Close sends the request close, and ends the process with its last client. If the client has not exited
// when ctx ends, the process is killed; the error says so if there was no reply either. Close may be repeated, and
// called for a client that has exited.
func (c *StdioClient) Close(ctx context.Context) error {
	_, err := c.Do(ctx, Request{Op: Close})
	if errors.Is(err, ErrExited) {
		err = nil
	}
	if last := c.stdio.remove(c); !last && err == nil {
		return nil
	}
	return errors.Join(err, c.stdio.shutdown(ctx, err == nil))
}

// remove counts c as closed and reports whether it was the last client of the process.
func (s *Stdio) remove(c *StdioClient) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.closed {
		c.closed = true
		s.open--
	}
	return s.open == 0
}

// shutdown ends the process: if graceful, by EOF on its input until ctx ends, then by SIGKILL.
func (s *Stdio) shutdown(ctx context.Context, graceful bool) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	if graceful {
		select {
		case <-s.done:
			return nil
		case <-ctx.Done():
		}
	}
	err := s.proc.Kill()
	_ = s.out.Close() // a child process of the client may hold the other end open
	<-s.done
	return err
}

func (s *Stdio) send(ctx context.Context, r Request, p *pending) (int64, error) {
	s.mu.Lock()
	if err := s.err; err != nil {
		s.mu.Unlock()
		return 0, err
	}
	s.nextID++
	r.ID = s.nextID
	s.waiting[r.ID] = p
	s.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return r.ID, fmt.Errorf("encoding a %s request: %w", r.Op, err)
	}
	select {
	case s.outbox <- append(line, '\n'):
		return r.ID, nil
	case <-s.done:
		return r.ID, s.reason()
	case <-ctx.Done():
		s.abandon(r.ID, p)
		return r.ID, fmt.Errorf("%w: %s: request not accepted (stdin blocked): %w", ErrTimeout, r.Op, ctx.Err())
	}
}

// write sends requests. It is a goroutine of its own because a client that does not read its input
// (a stopped one) blocks it. At the end it closes the input, which ends the client.
func (s *Stdio) write() {
	defer s.in.Close()
	for {
		select {
		case line := <-s.outbox:
			if _, err := s.in.Write(line); err != nil {
				s.end("it closed its standard input") // its output ends with it
				return
			}
		case <-s.closing:
			return
		case <-s.done:
			return
		}
	}
}

// read turns the client's output into replies and notices until it ends.
func (s *Stdio) read() {
	lines := bufio.NewScanner(s.out)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	var err error
	n := 1
	for ; err == nil && lines.Scan(); n++ {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			if problem := s.handleLine(line); problem != nil {
				err = fmt.Errorf("%w: output line %d: %w in %q", ErrProtocol, n, problem, format.Truncate(line, 120))
			}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		err = fmt.Errorf("%w: output line %d: expected at most %d bytes, got more", ErrProtocol, n, maxLine)
	}
	if err == nil {
		err = s.end("it closed its standard output")
	}
	_ = s.proc.Kill()
	_ = s.out.Close()
	s.mu.Lock()
	s.err = err
	for _, c := range s.clients { // order does not matter: each channel has its own reader
		close(c.notices)
	}
	s.mu.Unlock()
	close(s.done)
}

// handleLine delivers one line of output. An error names the expected form.
func (s *Stdio) handleLine(line string) error {
	var r Reply
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return replyError(err)
	}
	if r.Event != "" {
		return s.handleNotice(r)
	}
	if r.Type != "ok" && r.Type != "fail" && r.Type != "info" {
		return fmt.Errorf(`field type: expected "ok", "fail" or "info", got %q`, r.Type)
	}
	s.mu.Lock()
	p := s.waiting[r.ID]
	delete(s.waiting, r.ID)
	s.mu.Unlock()
	switch {
	case p == nil:
		return fmt.Errorf("field id: expected one of the open requests %s, got %d", s.openRequests(), r.ID)
	case p.late:
		r.Event, r.Op = EventLate, p.op
		s.notify(p.client, r)
	default:
		p.reply <- r
	}
	return nil
}

// openRequests lists the ids that have no reply yet.
func (s *Stdio) openRequests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return format.Truncate(fmt.Sprint(slices.Sorted(maps.Keys(s.waiting))), 60)
}

// replyError describes the error of a reply in the terms of JSON, for people who write their client in another
// language.
func replyError(err error) error {
	var unknown *promise.UnknownError
	if errors.As(err, &unknown) {
		return fmt.Errorf("field can: %w", unknown)
	}
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("expected one JSON object per line: %w", err)
	}
	if wrong.Field == "" {
		return fmt.Errorf("expected a JSON object, got a JSON %s", wrong.Value)
	}
	kind := map[string]string{"float64": "a number", "string": "a string", "uint64": "an integer from 0 to 2^64-1"}
	expected, ok := kind[wrong.Type.String()]
	if !ok {
		expected = "an integer"
	}
	return fmt.Errorf("field %s: expected %s, got %s", wrong.Field, expected, wrong.Value)
}

func (s *Stdio) handleNotice(r Reply) error {
	if r.Event != history.Lost && r.Event != history.Renewed {
		return fmt.Errorf("field event: expected %q or %q, got %q", history.Lost, history.Renewed, r.Event)
	}
	s.mu.Lock()
	c := s.clients[r.Client]
	s.mu.Unlock()
	if c == nil {
		return fmt.Errorf("field client: expected one named in a request, got %q", r.Client)
	}
	s.notify(c, r)
	return nil
}

// notify puts r into c's notices. While the process is shut down, a notice that finds
// the buffer full is dropped, so that the end does not wait for a reader.
func (s *Stdio) notify(c *StdioClient, r Reply) {
	select {
	case c.notices <- r:
	default:
		select {
		case c.notices <- r:
		case <-s.closing:
		}
	}
}

func (s *Stdio) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
