package locktest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
	// Another process may have taken the port meanwhile, and the nodes of a cluster need port + 10000 as well.
	for range 10 {
		if s := start(t, FreeAddr(t), args); s != nil {
			return s
		}
	}
	t.Fatal("redis-server exits right after its start")
	return nil
}

// StartServerAt is StartServer at an address that others know. It waits until the address is free.
func StartServerAt(t testing.TB, addr string, args ...string) (s *Server) {
	t.Helper()
	Eventually(t, timeout, "the address "+addr+" is free", func() bool {
		s = start(t, addr, args)
		return s != nil
	})
	return s
}

// StartSentinel starts a Sentinel for the master m at an address, with settings such as "failover-timeout m 3000".
func StartSentinel(t testing.TB, master string, settings ...string) *Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(master)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := ""
	for _, line := range append([]string{"monitor m " + host + " " + port + " 1"}, settings...) {
		text += "sentinel " + line + "\n"
	}
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return StartServer(t, conf, "--sentinel")
}

// start starts redis-server, and returns nil if it exits.
func start(t testing.TB, addr string, args []string) *Server {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server on the PATH: install Redis 6.2 or later to run this test")
	}
	_, port, _ := net.SplitHostPort(addr)
	all := slices.Concat(args, []string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "",
		"--appendonly", "no"})
	s := &Server{Addr: addr, cmd: exec.Command(bin, all...), ended: make(chan struct{})}
	if !s.waitUntilUp(t) {
		return nil
	}
	return s
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

// Stop pauses the server with SIGSTOP until Continue, or the end of the test: connections stay open, replies do not
// come. It returns when the main thread of the server, which serves clients, has stopped.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Continue)
	Eventually(t, timeout, "the server is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
		if os.IsNotExist(err) && runtime.GOOS != "linux" {
			return true
		}
		_, state, _ := strings.Cut(string(stat), ") ") // after the name of the program
		return strings.HasPrefix(state, "T")
	})
}

// Continue resumes the server.
func (s *Server) Continue() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// Dial connects to the server; the connection ends with the test.
func (s *Server) Dial(t testing.TB) *redis.Client { return Dial(t, s.Addr) }

// Dial connects to addr with limits of a few seconds; the connection ends with the test.
func Dial(t testing.TB, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, DialTimeout: replyTimeout, ReadTimeout: replyTimeout, PoolSize: 100, DialerRetries: 1,
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
