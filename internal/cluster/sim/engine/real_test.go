package engine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// value is a parsed reply.
type value struct {
	kind  byte
	text  string
	items []value
}

func (v value) String() string {
	if v.items == nil {
		return fmt.Sprintf("%c%q", v.kind, v.text)
	}
	return fmt.Sprintf("%c%v", v.kind, v.items)
}

// readValue reads one reply.
func readValue(r *bufio.Reader) (value, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return value{}, err
	}
	if len(line) < 3 {
		return value{}, fmt.Errorf("a line %q in a reply", line)
	}
	v := value{kind: line[0], text: line[1 : len(line)-2]}
	n, _ := strconv.Atoi(v.text)
	switch v.kind {
	case '+', '-', ':', '_', '#', ',', '(':
		return v, nil
	case '$', '=':
		if n < 0 {
			return v, nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return value{}, err
		}
		v.text = "=" + string(b[:n])
		return v, nil
	case '*', '~', '>', '%':
		if n < 0 {
			return v, nil
		}
		if v.kind == '%' {
			n *= 2
		}
		v.text, v.items = "", make([]value, n)
		for i := range v.items {
			if v.items[i], err = readValue(r); err != nil {
				return value{}, err
			}
		}
		return v, nil
	}
	return value{}, fmt.Errorf("a reply that begins with %q", line)
}

// realServer is a redis-server of this test.
type realServer struct {
	addr    string
	control *realConn
}

// startReal starts a redis-server that is killed when the test ends, or skips the test.
func startReal(t testing.TB, options ...string) *realServer {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("NOT COMPARED WITH REDIS: there is no redis-server on the PATH; install Redis 7.0 to run this test")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(path, append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "",
		"--appendonly", "no", "--dir", t.TempDir(), "--loglevel", "warning"}, options...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s := &realServer{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	for end := time.Now().Add(20 * time.Second); ; {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			s.control = &realConn{Conn: c, r: bufio.NewReader(c)}
			t.Cleanup(func() { c.Close() })
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not reply: %v", path, err)
		}
		<-time.After(5 * time.Millisecond) // there is no event for an open port
	}
	info, err := s.control.ask("INFO", "server")
	if err != nil {
		t.Fatal(err)
	}
	if version := infoField(info.text, "redis_version"); len(version) < 4 || version[:4] != "7.0." {
		t.Skipf("NOT COMPARED WITH REDIS: the engine is as Redis 7.0, and %s is %s", path, version)
	}
	return s
}

type realConn struct {
	net.Conn
	r *bufio.Reader
}

func (s *realServer) open() (*realConn, error) {
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	return &realConn{c, bufio.NewReader(c)}, nil
}

func encode(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// ask sends a command and reads one reply.
func (c *realConn) ask(args ...string) (value, error) {
	if _, err := c.Write(encode(args)); err != nil {
		return value{}, err
	}
	return c.read(10 * time.Second)
}

func (c *realConn) read(limit time.Duration) (value, error) {
	if c.r.Buffered() == 0 {
		if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return value{}, err
		}
	}
	return readValue(c.r)
}

// readAll reads n replies, or fewer if the server sends nothing for a while.
func (c *realConn) readAll(n int) ([]value, error) {
	var all []value
	for range n {
		v, err := c.read(5 * time.Second)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// infoField is a line of INFO.
func infoField(text, name string) string {
	_, rest, _ := strings.Cut(text, "\n"+name+":")
	field, _, _ := strings.Cut(rest, "\r\n")
	return field
}
