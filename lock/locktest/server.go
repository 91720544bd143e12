package locktest

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server on a free loopback port. It ends with its test, or with the test's process.
type Server struct {
	Addr  string // host:port
	cmd   *exec.Cmd
	ended chan struct{} // closed after its exit
}

// StartServer starts redis-server with additional args and waits until it replies. It skips
// the test if there is none on the PATH.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, func(port string) []string {
		return append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(),
			"--save", "", "--appendonly", "no"}, args...)
	})
}

// start starts redis-server with the arguments for a free port. If the server exits it retries with
// another port: another process may have taken the port meanwhile, and the nodes of a cluster need
// port + 10000 as well.
func start(t testing.TB, args func(port string) []string) *Server {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server on the PATH: install Redis 6.2 or later to run this test")
	}
	for range 10 {
		addr := FreeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		s := &Server{Addr: addr, cmd: exec.Command(bin, args(port)...), ended: make(chan struct{})}
		if s.waitUntilUp(t) {
			return s
		}
	}
	t.Fatal("redis-server exits right after its start")
	return nil
}

// waitUntilUp starts the server and reports whether it, and no other one, replies at its address.
func (s *Server) waitUntilUp(t testing.TB) bool {
	t.Helper()
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(s.Kill)
	rdb := s.Dial(t)
	pid, up, ended := strconv.Itoa(s.cmd.Process.Pid), false, false
	Eventually(t, timeout, "redis-server replies", func() bool {
		info, err := rdb.InfoMap(context.Background(), "server").Result()
		up = err == nil && info["Server"]["process_id"] == pid
		select {
		case <-s.ended:
			ended = true
		default:
		}
		return up || ended
	})
	return up
}

// Kill ends the server with SIGKILL. It may be repeated.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// Stop pauses the server with SIGSTOP until Continue: connections stay open, replies do not come.
func (s *Server) Stop() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue resumes the server.
func (s *Server) Continue() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// Dial connects to the server; the connection ends with the test.
func (s *Server) Dial(t testing.TB) *redis.Client { return Dial(t, s.Addr) }

// Dial connects to addr with limits of a few seconds; the connection ends with the test.
func Dial(t testing.TB, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, DialTimeout: replyTimeout, ReadTimeout: replyTimeout, PoolSize: 50, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// replyTimeout is for one reply of a server, on a busy machine.
const replyTimeout = 3 * time.Second

// Eventually polls cond until it is true, and fails the test after limit; what describes cond.
func Eventually(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
