package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/lockchaos/lockchaos/internal/format"
)

// Serve is the client's end of the protocol for native locks: it reads requests from in and writes replies to out until
// in ends or ctx is done. Every value of Request.Client is a client of its own; each executes one request at a time.
// Serve closes all connections before it returns. When ctx ended it, a read of in may still be blocked and will
// consume one more line. find finds the lock that the first request of a client names.
func Serve(ctx context.Context, in io.Reader, out io.Writer, find Lookup) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{out: json.NewEncoder(out), lookup: sharing(find), workers: map[string]*worker{}}
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

// sharing is find whose rows open one lock for all clients that name the same instance.
func sharing(find Lookup) Lookup {
	var mu sync.Mutex
	rows := map[string]Spec{}
	return func(name string) (Spec, error) {
		mu.Lock()
		defer mu.Unlock()
		row, known := rows[name]
		if known {
			return row, nil
		}
		row, err := find(name)
		if err == nil {
			row = SharesInstances(row)
			rows[name] = row
		}
		return row, err
	}
}

// readRequests sends every line of in to requests, until in or ctx ends.
func readRequests(ctx context.Context, in io.Reader, requests chan<- Request) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("reading a request: expected one JSON object per line: %w in %q", err,
				format.Truncate(lines.Text(), 120))
		}
		select {
		case requests <- r:
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
	lookup  Lookup
	writing sync.Mutex
	out     *json.Encoder
	workers map[string]*worker // by the name of their client; only the goroutine of serve touches it
}

// worker executes the requests of one client, one at a time.
type worker struct {
	queue chan Request
	done  chan struct{}
}

func (s *server) worker(ctx context.Context, name string) *worker {
	if w, ok := s.workers[name]; ok {
		return w
	}
	w := &worker{queue: make(chan Request, 16), done: make(chan struct{})}
	native := newNative(func(r Reply) { s.send(name, r) }, MonotonicNow, s.lookup)
	s.workers[name] = w
	go func() {
		defer close(w.done)
		for r := range w.queue {
			reply := native.handle(ctx, r)
			reply.ID = r.ID
			s.send(name, reply)
		}
		native.handle(context.WithoutCancel(ctx), Request{Op: Close})
	}()
	return w
}

// dispatch queues r for its client.
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
	_ = s.out.Encode(r) // if the harness has exited, our input ends as well
}

// shutdown ends every worker. Requests in progress are canceled, and holds are
// left to their lease, as when a process exits.
func (s *server) shutdown(cancel context.CancelFunc) {
	cancel()
	for _, w := range s.workers { // order does not matter: each is waited for
		close(w.queue)
	}
	for _, w := range s.workers { // order does not matter: all are waited for
		<-w.done
	}
}
