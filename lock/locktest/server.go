package locktest

import (
	"context"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server of its own on a free port of loopback. It ends with
// its test, or with the test's process.
type Server struct {
	Addr string // host:port
	cmd  *exec.Cmd
}

// StartServer starts redis-server with args after its own, and waits until it
// answers. The test is skipped, with a reason, if there is none on the PATH.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server on the PATH: install Redis 7 or later to run this test")
	}
	addr := FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	all := append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(),
		"--save", "", "--appendonly", "no"}, args...)
	s := &Server{Addr: addr, cmd: exec.Command(bin, all...)}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	t.Cleanup(s.Kill)
	rdb := s.Dial(t)
	Eventually(t, 10*time.Second, "redis-server answers", func() bool {
		return rdb.Ping(context.Background()).Err() == nil
	})
	return s
}

// Kill ends the server as a crash does. It may be called twice.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Stop has the server stand still until Continue: connections stay, answers do not come.
func (s *Server) Stop() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue ends Stop.
func (s *Server) Continue() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// Dial connects to the server; the connection ends with the test.
func (s *Server) Dial(t testing.TB) *redis.Client { return Dial(t, s.Addr) }

// Dial connects to addr with short limits; the connection ends with the test.
func Dial(t testing.TB, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, DialTimeout: time.Second, ReadTimeout: time.Second, PoolSize: 50, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Eventually asks until cond is true, and fails the test after limit.
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
