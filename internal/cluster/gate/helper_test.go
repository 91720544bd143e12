package gate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// server replies to each line "x" with "re x", and records its input.
type server struct {
	listener net.Listener
	tasks    sync.WaitGroup
	got      chan string // lines, and "EOF" or "RST" at the end of a connection
}

func newServer(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{listener: l, got: make(chan string, 1000)}
	s.tasks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.tasks.Go(func() { s.reply(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.tasks.Wait() // hangs if the gate leaves a connection open
	})
	return s
}

func (s *server) reply(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			end := "EOF"
			if !errors.Is(err, io.EOF) {
				end = "RST"
			}
			s.got <- end
			return
		}
		s.got <- strings.TrimSpace(line)
		fmt.Fprintf(c, "re %s", line)
	}
}

// expectNothing fails if the server receives anything for a while.
func (s *server) expectNothing(t *testing.T) {
	t.Helper()
	select {
	case line := <-s.got:
		t.Fatalf("the server received %q", line)
	case <-time.After(30 * time.Millisecond):
	}
}

func (s *server) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-s.got:
			if got != w {
				t.Fatalf("the server received %q, want %q", got, w)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("the server did not receive %q", w)
		}
	}
}

func openGate(t *testing.T, target string) *Gate {
	t.Helper()
	g, err := Open(Config{Listen: "127.0.0.1:0", Target: target, Identify: func(a netip.AddrPort) string {
		return map[string]string{"127.0.0.7": "a", "127.0.0.8": "b"}[a.Addr().String()]
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// client is a caller with a deadline on everything.
type client struct {
	*net.TCPConn
	in *bufio.Reader
}

func dial(t *testing.T, g *Gate, source string) client {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	c, err := d.Dial("tcp", g.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{c.(*net.TCPConn), bufio.NewReader(c)}
}

func (c client) write(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		t.Fatal(err)
	}
}

// expectRefusal connects from source and is reset: while connecting, or right after.
func expectRefusal(t *testing.T, g *Gate, source string) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	c, err := d.Dial("tcp", g.Addr())
	if err != nil {
		return
	}
	defer c.Close()
	client{c.(*net.TCPConn), bufio.NewReader(c)}.expect(t, "RST")
}

// read reads a line, or says how the connection ended, or "silence".
func (c client) read(wait time.Duration) string {
	_ = c.SetReadDeadline(time.Now().Add(wait))
	line, err := c.in.ReadString('\n')
	switch {
	case err == nil:
		return strings.TrimSpace(line)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	case errors.Is(err, io.EOF):
		return "EOF"
	}
	return "RST"
}

func (c client) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := c.read(20 * time.Second); got != w {
			t.Fatalf("received %q, want %q", got, w)
		}
	}
}

func (c client) expectNothing(t *testing.T) {
	t.Helper()
	if got := c.read(30 * time.Millisecond); got != "silence" {
		t.Fatalf("received %q, want nothing", got)
	}
}

// connected is a server, a gate and two connected callers, a and b.
func connected(t *testing.T) (*server, *Gate, client, client) {
	t.Helper()
	s := newServer(t)
	g := openGate(t, s.listener.Addr().String())
	a, b := dial(t, g, "127.0.0.7"), dial(t, g, "127.0.0.8")
	for _, c := range []client{a, b} {
		c.write(t, "hi")
		s.expect(t, "hi")
		c.expect(t, "re hi")
	}
	return s, g, a, b
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	locktest.Eventually(t, 20*time.Second, "the counters of the gate have changed", ok)
}
