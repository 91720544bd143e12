package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/lockchaos/lockchaos/history"
)

// Why a client did not answer. After any of them the outcome of the request is
// unknown; after ErrExited and ErrProtocol nothing more can be asked.
var (
	ErrExited   = errors.New("the client process has ended")
	ErrProtocol = errors.New("the client answered nonsense")
	ErrTimeout  = errors.New("the client did not answer in time")
)

// EventLate is the Event of a reply that came after the harness had given up
// waiting for it; a late "work" is a client that arrives late at the guarded
// resource, and matters.
const EventLate = "late"

// maxLine bounds one line of a client: longer is nonsense.
const maxLine = 1 << 20

// noticeQueue is how many notices of one client may wait for their reader. It
// is small because there may be a thousand clients.
const noticeQueue = 32

// Proc is the operating system's side of a client in a process of its own.
type Proc interface {
	Stop() error     // SIGSTOP; returns when the process stands still
	Continue() error // SIGCONT
	Kill() error     // SIGKILL; nil if it has ended already
	PID() int        // 0 once it has ended
}

// Stdio is the harness's end of the client protocol: it writes requests to a
// client's standard input and reads replies from its standard output. Several
// clients may live in one process; each is a [Client] of its own, see Client.
type Stdio struct {
	proc    Proc
	in      io.WriteCloser
	out     io.ReadCloser
	outbox  chan []byte   // requests on their way to the one goroutine that writes
	done    chan struct{} // closed when the output has ended and the process with it
	closing chan struct{} // closed when nobody has to hear notices any more

	mu      sync.Mutex
	nextID  int64
	waiting map[int64]*pending
	clients map[string]*StdioClient
	open    int   // clients that have not been closed
	err     error // why the output ended
	closed  bool  // closing is closed
}

type pending struct {
	client *StdioClient
	op     string
	reply  chan Reply // 1 deep
	late   bool       // Do has given up; guarded by Stdio.mu
}

// NewStdio speaks with a client through its standard input and output, which
// it owns and closes. When the output ends the client is gone, whatever its
// process still does; so proc is killed then, lest a watchdog of it go on
// renewing a lock that counts as given up.
func NewStdio(in io.WriteCloser, out io.ReadCloser, proc Proc) *Stdio {
	s := &Stdio{
		proc: proc, in: in, out: out, done: make(chan struct{}), closing: make(chan struct{}),
		outbox: make(chan []byte, 16), waiting: map[int64]*pending{}, clients: map[string]*StdioClient{},
	}
	go s.write()
	go s.read()
	return s
}

// Client is the client of that name in this process; the empty name is the
// only one. It must be called before the first Do of that client.
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

// Do sends r and waits for its answer. If ctx ends first the error is ErrTimeout,
// and a reply that comes later goes to Notices as [EventLate].
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
		return reply, nil
	case <-s.done:
		select {
		case reply := <-p.reply: // the answer was the last thing it said
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

// abandon makes the answer to id, should it still come, a late notice. It is
// false if the answer is there already.
func (s *Stdio) abandon(id int64, p *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[id] == nil {
		return false
	}
	p.late = true
	return true
}

// Notices tells what the client said of its own accord, late answers included.
// Closed when the client is gone. Nobody reading blocks the client's replies
// once some are queued.
func (c *StdioClient) Notices() <-chan Reply { return c.notices }

// Stop stops the client's process; with it every other client in that process.
func (c *StdioClient) Stop() error { return c.stdio.proc.Stop() }

// Continue lets the client's process go on.
func (c *StdioClient) Continue() error { return c.stdio.proc.Continue() }

// Kill ends the client's process at once, as a crash does.
func (c *StdioClient) Kill() error { return c.stdio.proc.Kill() }

// PID is the client's process id, or 0 once it has ended.
func (c *StdioClient) PID() int { return c.stdio.proc.PID() }

// Close asks the client to close. The last client of a process ends the
// process with it. One that does not obey until ctx ends is killed, and the
// error says so. It may be called twice, and for a client that is gone.
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

// leave counts c out; true if no client of the process is left.
func (s *Stdio) remove(c *StdioClient) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.closed {
		c.closed = true
		s.open--
	}
	return s.open == 0
}

// shutdown ends the process: politely, by the end of its input, for as long as
// ctx allows, then by force.
func (s *Stdio) shutdown(ctx context.Context, politely bool) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	if politely {
		select {
		case <-s.done:
			return nil
		case <-ctx.Done():
		}
	}
	err := s.proc.Kill()
	_ = s.out.Close() // whoever inherited the other end must not keep us
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
		return r.ID, fmt.Errorf("%w: it does not even take the %s request: %w", ErrTimeout, r.Op, ctx.Err())
	}
}

// write sends requests, in a goroutine of its own because a client that does
// not read its input (one that stands still) blocks it, and must block nobody
// else. The input is closed at the end, which tells the client to end.
func (s *Stdio) write() {
	defer s.in.Close()
	for {
		select {
		case line := <-s.outbox:
			if _, err := s.in.Write(line); err != nil {
				_ = s.proc.Kill() // it lives perhaps, but can be asked nothing; its output ends with it
				return
			}
		case <-s.closing:
			return
		case <-s.done:
			return
		}
	}
}

// read turns the client's output into answers and notices until it ends.
func (s *Stdio) read() {
	lines := bufio.NewScanner(s.out)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	var err error
	for err == nil && lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			err = s.handleLine(text)
		}
	}
	if err == nil {
		err = ErrExited
		if errors.Is(lines.Err(), bufio.ErrTooLong) {
			err = fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, maxLine)
		}
	}
	_ = s.proc.Kill() // nothing it says can be believed, or nothing will come
	_ = s.out.Close()
	s.mu.Lock()
	s.err = err
	for _, c := range s.clients { // order does not matter: each channel has its own reader
		close(c.notices)
	}
	s.mu.Unlock()
	close(s.done)
}

func (s *Stdio) handleLine(line string) error {
	var r Reply
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return fmt.Errorf("%w: %q: %w", ErrProtocol, truncate(line), err)
	}
	if r.Event != "" {
		return s.handleNotice(r, line)
	}
	if r.Type != "ok" && r.Type != "fail" && r.Type != "info" {
		return fmt.Errorf("%w: %q: type is not ok, fail or info", ErrProtocol, truncate(line))
	}
	s.mu.Lock()
	p := s.waiting[r.ID]
	delete(s.waiting, r.ID)
	s.mu.Unlock()
	switch {
	case p == nil:
		return fmt.Errorf("%w: %q: nobody asked for id %d", ErrProtocol, truncate(line), r.ID)
	case p.late:
		r.Event, r.Op = EventLate, p.op
		s.notify(p.client, r)
	default:
		p.reply <- r
	}
	return nil
}

func (s *Stdio) handleNotice(r Reply, line string) error {
	if r.Event != history.Lost && r.Event != history.Renewed {
		return fmt.Errorf("%w: %q: event is not lost or renewed", ErrProtocol, truncate(line))
	}
	s.mu.Lock()
	c := s.clients[r.Client]
	s.mu.Unlock()
	if c == nil {
		return fmt.Errorf("%w: %q: it has no client %q", ErrProtocol, truncate(line), r.Client)
	}
	s.notify(c, r)
	return nil
}

// tell puts r into c's notices. When the process is being ended, what nobody
// has room for is dropped, so that the end does not wait for a reader.
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

func truncate(s string) string {
	if len(s) > 120 {
		return s[:120] + "…"
	}
	return s
}
