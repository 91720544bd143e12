package lock

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/lock/locktest"
	"github.com/redis/go-redis/v9"
)

// server is a redis-server of its own on a free loopback port.
type server struct {
	addr  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has exited
}

// Tests run on busy machines, so these limits do not measure speed. What must not happen
// within such a time is prevented by other means, such as a poll limit of an hour.
const (
	// testTimeout is for what must happen without help.
	testTimeout = time.Minute
	// replyTimeout is for one reply of a server that may be stopped on purpose.
	replyTimeout = 3 * time.Second
	// waitTimeout is for a wait that is to time out, after the first reply has come.
	waitTimeout = 4 * time.Second
	// watchedLease is renewed in time even if the machine is stopped for a while.
	watchedLease = 5 * time.Second
)

func startRedis(t testing.TB, args ...string) *server {
	t.Helper()
	for range 4 { // another process may take the port before the server does
		if s := tryRedis(t, freeAddr(t), args...); s != nil {
			return s
		}
	}
	t.Fatal("no redis-server started")
	return nil
}

// startRedisAt starts a server that others know by its address.
func startRedisAt(t testing.TB, addr string, args ...string) *server {
	t.Helper()
	var s *server
	eventually(t, testTimeout, "the address "+addr+" is free", func() bool {
		s = tryRedis(t, addr, args...)
		return s != nil
	})
	return s
}

func tryRedis(t testing.TB, addr string, args ...string) *server {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server on the PATH: install Redis 6.2 or later to run this test")
	}
	_, port, _ := net.SplitHostPort(addr)
	all := append([]string{}, args...)
	all = append(all, "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--appendonly", "no")
	return launch(t, addr, exec.Command(bin, all...))
}

// launch starts cmd, waits until it, and no other process, replies at addr, and ends it
// with the test. It is nil if cmd has exited.
func launch(t testing.TB, addr string, cmd *exec.Cmd) *server {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	s := &server{addr: addr, cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(s.kill)
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer rdb.Close()
	pid := fmt.Sprint(cmd.Process.Pid)
	up := false
	eventually(t, testTimeout, "redis-server replies", func() bool {
		info, err := rdb.InfoMap(context.Background(), "server").Result()
		up = err == nil && info["Server"]["process_id"] == pid
		return up || isClosed(s.ended)
	})
	if !up {
		return nil
	}
	return s
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// kill ends the server as a crash does. It may be called twice.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

func (s *server) dial(t testing.TB) *redis.Client {
	t.Helper()
	return dialRedis(t, s.addr)
}

func dialRedis(t testing.TB, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, DialTimeout: replyTimeout, ReadTimeout: replyTimeout, PoolSize: 100, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func freeAddr(t testing.TB) string {
	t.Helper()
	return locktest.FreeAddr(t)
}

func newTestClient(t testing.TB, rdb redis.UniversalClient, o Options) *Client {
	t.Helper()
	c, err := New(rdb, o)
	if err != nil {
		t.Fatal(err)
	}
	settle(c)
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// settle gives c limits for a busy machine, and no heartbeats if it does not poll.
func settle(c *Client) {
	c.grace = testTimeout
	if c.o.PollMax == time.Hour {
		c.maxHeartbeat = time.Hour
	}
}

func closeClient(t testing.TB, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// eventually repeats cond until it is true, and fails the test after limit.
func eventually(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	locktest.Eventually(t, limit, what, cond)
}

// acquire acquires any lock with holds.
func acquire[H anyHold](t testing.TB, m taker[H], opts ...Option) *Hold {
	t.Helper()
	h, err := m.Acquire(context.Background(), append(opts, WithWait(testTimeout))...)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return h.bare()
}

func release(t testing.TB, h interface {
	Release(ctx context.Context) error
}) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatalf("release: %v", err)
	}
}

// hashOf is the hash of a lock as an observer sees it.
func hashOf(t testing.TB, rdb *redis.Client, name string) map[string]string {
	t.Helper()
	m, err := rdb.HGetAll(context.Background(), name).Result()
	if err != nil {
		t.Fatalf("hgetall %s: %v", name, err)
	}
	return m
}

func mustExist(t testing.TB, rdb *redis.Client, name string, want bool) {
	t.Helper()
	n, err := rdb.Exists(context.Background(), name).Result()
	if err != nil {
		t.Fatal(err)
	}
	if (n == 1) != want {
		t.Fatalf("key %q exists: %v, want %v", name, n == 1, want)
	}
}

func sentinelConf(t testing.TB, addr, master string) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(addr)
	host, masterPort, _ := net.SplitHostPort(master)
	path := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor m %s %s 1\n"+
		"sentinel down-after-milliseconds m 500\nsentinel failover-timeout m 3000\n",
		port, filepath.Dir(path), host, masterPort)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// stop pauses the server until cont, or the end of the test: connections stay open, and replies do not come. It returns
// when its main thread, which serves clients, has stopped.
func (s *server) stop(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cont)
	eventually(t, testTimeout, "the server is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
		if os.IsNotExist(err) && runtime.GOOS != "linux" {
			return true
		}
		_, state, _ := strings.Cut(string(stat), ") ") // after the name of the program
		return strings.HasPrefix(state, "T")
	})
}

func (s *server) cont() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }
