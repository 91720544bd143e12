//go:build ignore

// The client's end of the protocol (docs/reference/protocol.md) for lock libraries in Go: serve(client).

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

type request struct {
	ID      int64    `json:"id"`
	Op      string   `json:"op"`
	Key     string   `json:"key"`
	Keys    []string `json:"keys"`
	Owner   string   `json:"owner"`
	Mode    string   `json:"mode"`
	Permits int      `json:"permits"`
	WaitMS  float64  `json:"wait_ms"`
	LeaseMS float64  `json:"lease_ms"`
	MS      float64  `json:"ms"`
	Setup   struct {
		Endpoints endpoints         `json:"endpoints"`
		Options   map[string]string `json:"options"`
	} `json:"setup"`
}

type endpoints struct {
	Kind       string   `json:"kind"`
	Addrs      []string `json:"addrs"`
	Sentinels  []string `json:"sentinels"`
	MasterName string   `json:"master_name"`
	Source     string   `json:"source"`
	Password   string   `json:"password"`

	Options map[string]string `json:"-"` // of the scenario's lock
}

type reply struct {
	ID      int64    `json:"id"`
	Type    string   `json:"type"`
	Can     []string `json:"can,omitempty"`
	ValidMS float64  `json:"valid_ms,omitempty"`
	MonoNS  int64    `json:"mono_ns,omitempty"`
	Code    string   `json:"code,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// notice is a message of a client that replies to no request.
type notice struct {
	Event  string `json:"event"`
	Key    string `json:"key"`
	Owner  string `json:"owner"`
	MonoNS int64  `json:"mono_ns"`
}

// failed says that an operation certainly did not happen. Any other error is an unknown outcome.
type failed struct {
	code string
	err  error
}

func (f failed) Error() string { return f.err.Error() }

// promise is a validity that begins when it is made; nil: the library promises none.
type promise struct {
	valid time.Duration
	mono  int64
}

func promised(until time.Time) *promise {
	now := mono() // first: a pause between the two readings then shortens the promise, and never extends it
	return &promise{time.Until(until), now}
}

// mono is CLOCK_MONOTONIC in nanoseconds.
func mono() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// locker is implemented by an adapter. wait is 0 for one try.
type locker interface {
	can() []string
	acquire(ctx context.Context, key string, lease, wait time.Duration) (lock any, p *promise, err error)
	renew(ctx context.Context, lock any, lease time.Duration) (*promise, error)
	release(ctx context.Context, lock any) error
}

// dial connects to a server from the address of this client.
func (e endpoints) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	if e.Source != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(e.Source)}
	}
	return d.DialContext(ctx, network, addr)
}

// lossReporter is a lock object whose library reports that the hold is lost.
type lossReporter interface{ lost() <-chan struct{} }

// untilGranted calls try until it succeeds, wait is over, or an error is not failed: then the outcome is unknown. With
// the loops of the libraries, which return one error when the context ends, it would always be unknown.
func untilGranted(wait time.Duration, delay func() time.Duration, try func() error) error {
	deadline := time.Now().Add(wait)
	for {
		err := try()
		var f failed
		if !errors.As(err, &f) || !time.Now().Before(deadline) {
			return err
		}
		time.Sleep(min(delay(), time.Until(deadline)))
	}
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// server is one client of the protocol.
type server struct {
	l locker

	mu    sync.Mutex
	out   *json.Encoder
	locks map[[2]string]any // the hold of an owner at a key
}

func (s *server) say(line any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(line)
}

// serve serves requests until close or the end of input.
func serve(open func(endpoints) locker) {
	s := &server{out: json.NewEncoder(os.Stdout), locks: make(map[[2]string]any)}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var q request
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		a := reply{ID: q.ID, Type: "ok"}
		var p *promise
		var err error
		switch q.Op {
		case "init":
			q.Setup.Endpoints.Options = q.Setup.Options
			s.l = open(q.Setup.Endpoints)
			a.Can = s.l.can()
		case "close":
			s.say(a)
			return
		default:
			p, err = s.perform(q)
		}
		var f failed
		switch {
		case errors.As(err, &f):
			a.Type, a.Code, a.Error = "fail", f.code, f.Error()
		case err != nil:
			a.Type, a.Code, a.Error = "info", "unknown", err.Error()
		case p != nil:
			a.ValidMS, a.MonoNS = float64(p.valid)/float64(time.Millisecond), p.mono
		}
		s.say(a)
		if r, ok := s.held(q).(lossReporter); ok && err == nil && (q.Op == "acquire" || q.Op == "try") {
			go s.report(q, r)
		}
	}
}

// held is the hold of the request's owner; nil: none.
func (s *server) held(q request) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locks[[2]string{q.Owner, q.Key}]
}

// report sends a notice if a hold is lost that has not been released.
func (s *server) report(q request, r lossReporter) {
	<-r.lost()
	if s.held(q) == r {
		s.say(notice{"lost", q.Key, q.Owner, mono()})
	}
}

func (s *server) set(at [2]string, lock any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lock == nil {
		delete(s.locks, at)
	} else {
		s.locks[at] = lock
	}
}

func (s *server) perform(q request) (*promise, error) {
	ctx, at := context.Background(), [2]string{q.Owner, q.Key}
	if q.Mode != "" || q.Permits != 0 || len(q.Keys) > 0 {
		return nil, failed{"unknown-op", errors.New("mode, permits and keys are not supported")}
	}
	lease := milliseconds(q.LeaseMS)
	switch q.Op {
	case "acquire", "try":
		wait := milliseconds(q.WaitMS)
		if q.Op == "try" {
			wait = 0
		}
		lock, p, err := s.l.acquire(ctx, q.Key, lease, wait)
		if err == nil {
			s.set(at, lock)
		}
		return p, err
	case "work":
		time.Sleep(milliseconds(q.MS))
		return nil, nil
	case "renew", "release":
		lock := s.held(q)
		if lock == nil {
			return nil, failed{"not-held", errors.New("nothing is held")}
		}
		if q.Op == "renew" {
			return s.l.renew(ctx, lock, lease)
		}
		s.set(at, nil)
		return nil, s.l.release(ctx, lock)
	}
	return nil, failed{"unknown-op", fmt.Errorf("unknown operation %s", q.Op)}
}
