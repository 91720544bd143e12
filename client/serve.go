package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/lockchaos/lockchaos/history"
)

const (
	opAcquire = history.Acquire
	opTry     = history.Try
	opRenew   = history.Renew
	opRelease = history.Release
	opWork    = history.Work
)

// Serve is the client's end of the protocol for native locks: it reads
// requests from in and answers on out until in ends or ctx is done. Every
// value of Request.Client is a client of its own; each works on one request at
// a time. Connections are closed before it returns. When ctx is what ended it,
// a read of in may still be under way and will swallow one line.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return serve(ctx, in, out, Lookup)
}

// lookup finds a lock by its name; [Lookup], except in tests.
type lookup func(name string) (Spec, error)

func serve(ctx context.Context, in io.Reader, out io.Writer, find lookup) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{out: json.NewEncoder(out), lookup: find, workers: map[string]*worker{}}
	defer s.shutdown(cancel)
	requests, ended := make(chan Request), make(chan error, 1)
	go func() { ended <- readRequests(ctx, in, requests) }()
	for {
		select {
		case r := <-requests:
			s.dispatch(ctx, r)
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// readRequests puts every line of in into to, until in or ctx ends.
func readRequests(ctx context.Context, in io.Reader, to chan<- Request) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("reading a request: %q: %w", truncate(lines.Text()), err)
		}
		select {
		case to <- r:
		case <-ctx.Done():
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading requests: %w", err)
	}
	return nil
}

type server struct {
	lookup  lookup
	writing sync.Mutex
	out     *json.Encoder
	workers map[string]*worker // only the reading goroutine touches it
}

// desk is where the requests of one client are worked on, one at a time.
type worker struct {
	native *Native
	queue  chan Request
	done   chan struct{}
}

func (s *server) worker(ctx context.Context, name string) *worker {
	if d, ok := s.workers[name]; ok {
		return d
	}
	d := &worker{queue: make(chan Request, 16), done: make(chan struct{})}
	d.native = NewNative(func(r Reply) { s.send(name, r) }, Mono)
	d.native.lookup = s.lookup
	s.workers[name] = d
	go func() {
		defer close(d.done)
		for r := range d.queue {
			reply := d.native.Handle(ctx, r)
			reply.ID = r.ID
			s.send(name, reply)
		}
		d.native.Handle(context.WithoutCancel(ctx), Request{Op: Close})
	}()
	return d
}

// hand puts r on the desk of its client. A client with a full desk is not
// waited for beyond the end of ctx.
func (s *server) dispatch(ctx context.Context, r Request) {
	select {
	case s.worker(ctx, r.Client).queue <- r:
	case <-ctx.Done():
	}
}

func (s *server) send(name string, r Reply) {
	r.Client = name
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.out.Encode(r) // a harness that is gone also ends our input
}

// hang ends every desk: what is under way is cancelled, what is held is left
// to its lease, as when a process ends.
func (s *server) shutdown(cancel context.CancelFunc) {
	cancel()
	for _, d := range s.workers { // order does not matter: each is waited for
		close(d.queue)
	}
	for _, d := range s.workers { // order does not matter: all are waited for
		<-d.done
	}
}
