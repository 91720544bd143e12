package lock

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/lock/locktest"
	"github.com/redis/go-redis/v9"
)

// server is a redis-server of its own on a free loopback port.
type server struct {
	addr string
	cmd  *exec.Cmd
}

func startRedis(t testing.TB, args ...string) *server {
	t.Helper()
	return startRedisAt(t, freeAddr(t), args...)
}

func startRedisAt(t testing.TB, addr string, args ...string) *server {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server on the PATH: install Redis 6 or later to run this test")
	}
	_, port, _ := net.SplitHostPort(addr)
	all := append([]string{}, args...)
	all = append(all, "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--appendonly", "no")
	return launch(t, addr, exec.Command(bin, all...))
}

// launch starts cmd, waits until it answers at addr, and ends it with the test.
func launch(t testing.TB, addr string, cmd *exec.Cmd) *server {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	s := &server{addr: addr, cmd: cmd}
	t.Cleanup(s.kill)
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer rdb.Close()
	eventually(t, 10*time.Second, "redis-server answers", func() bool {
		return rdb.Ping(context.Background()).Err() == nil
	})
	return s
}

// kill ends the server as a crash does. It may be called twice.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *server) dial(t testing.TB) *redis.Client {
	t.Helper()
	return dialRedis(t, s.addr)
}

func dialRedis(t testing.TB, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, DialTimeout: time.Second, ReadTimeout: time.Second, PoolSize: 100, DialerRetries: 1,
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
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

func closeClient(t testing.TB, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// eventually asks until cond is true, and fails the test after limit.
func eventually(t testing.TB, limit time.Duration, what string, cond func() bool) {
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

func acquire(t testing.TB, m *Mutex, o AcquireOptions) *Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	h, err := m.Acquire(ctx, o)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return h
}

func release(t testing.TB, h *Hold) {
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

// Signals to a server: it stands still, it goes on.
const (
	stop = syscall.SIGSTOP
	cont = syscall.SIGCONT
)
