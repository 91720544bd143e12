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

// Server is a redis-server of its own on a free port of loopback. It ends with
// its test, or with the test's process.
type Server struct {
	Addr  string // host:port
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
}

// StartServer starts redis-server with args after its own, and waits until it
// answers. The test is skipped, with a reason, if there is none on the PATH.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, func(port string) []string {
		return append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(),
			"--save", "", "--appendonly", "no"}, args...)
	})
}

// start starts redis-server with the arguments for a free port. It tries again
// with another one if the server ends: somebody else may have taken the port
// meanwhile, and the nodes of a cluster need one that is 10000 higher, too.
func start(t testing.TB, args func(port string) []string) *Server {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server on the PATH: install Redis 7 or later to run this test")
	}
	for range 10 {
		addr := FreeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		s := &Server{Addr: addr, cmd: exec.Command(bin, args(port)...), ended: make(chan struct{})}
		if s.comesUp(t) {
			return s
		}
	}
	t.Fatal("redis-server ends as soon as it is started")
	return nil
}

// comesUp starts the server and reports whether it, and nobody else, answers at its address.
func (s *Server) comesUp(t testing.TB) bool {
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
	Eventually(t, patience, "redis-server answers", func() bool {
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

// Kill ends the server as a crash does. It may be called twice.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// Stop has the server stand still until Continue: connections stay, answers do not come.
func (s *Server) Stop() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue ends Stop.
func (s *Server) Continue() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// Dial connects to the server; the connection ends with the test.
func (s *Server) Dial(t testing.TB) *redis.Client { return Dial(t, s.Addr) }

// Dial connects to addr with limits of a few seconds; the connection ends with the test.
func Dial(t testing.TB, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, DialTimeout: answering, ReadTimeout: answering, PoolSize: 50, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// answering is for one answer of a server, on a machine that has other things to do.
const answering = 3 * time.Second

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
