package etcd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/lockchaos/lockchaos/lock/locktest"
)

// server is an etcd server whose answers a test can keep from clients.
type server struct {
	addr  string
	admin *clientv3.Client // gets every answer

	mu    sync.Mutex
	held  chan struct{} // closed: answers pass
	conns []*keptConn   // of clients
}

// startServer starts a server of its own for a test.
func startServer(t *testing.T) *server {
	t.Helper()
	name := os.Getenv("LOCKCHAOS_ETCD")
	if name == "" {
		name = "etcd"
	}
	program, err := exec.LookPath(name)
	if err != nil {
		cache, _ := os.UserCacheDir()
		if program, err = exec.LookPath(filepath.Join(cache, "lockchaos/etcd/etcd")); err != nil {
			t.Skip("NOT RUN: no etcd on the PATH: scripts/etcd gets it")
		}
	}
	s := &server{addr: locktest.FreeAddr(t), held: make(chan struct{})}
	close(s.held)
	t.Cleanup(s.pass)
	peers := "http://" + locktest.FreeAddr(t)
	cmd := exec.Command(program, "--name=a", "--data-dir="+t.TempDir(), "--logger=zap", "--log-outputs=/dev/null",
		"--listen-client-urls=http://"+s.addr, "--advertise-client-urls=http://"+s.addr, "--listen-peer-urls="+peers,
		"--initial-advertise-peer-urls="+peers, "--initial-cluster=a="+peers, "--heartbeat-interval=20",
		"--election-timeout=100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.admin = connect(t, s.addr, new(net.Dialer).DialContext)
	s.waitForKeys(t, "orders", 0)
	return s
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

func connect(t *testing.T, addr string, dial dialFunc) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dial(ctx, "tcp", addr) }),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond},
			}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// longLease does not end on a busy machine. shortLease ends within a test, and not before the test wants it to.
const (
	longLease  = time.Minute
	shortLease = 6 * time.Second
)

// client is a client whose answers can be kept.
func (s *server) client(t *testing.T, o Options) *Client {
	t.Helper()
	return open(t, connect(t, s.addr, s.dial), o)
}

// direct is a client that gets every answer.
func (s *server) direct(t *testing.T) *Client {
	t.Helper()
	return open(t, connect(t, s.addr, new(net.Dialer).DialContext), Options{})
}

func open(t *testing.T, etcd *clientv3.Client, o Options) *Client {
	t.Helper()
	o.Lease, o.Timeout = cmp.Or(o.Lease, longLease), cmp.Or(o.Timeout, testTimeout)
	c, err := Open(etcd, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// dial connects a client.
func (s *server) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := &keptConn{Conn: conn, server: s}
	s.conns = append(s.conns, kept)
	return kept, nil
}

// keptConn is a connection whose reads wait while the server's answers are kept.
type keptConn struct {
	net.Conn
	server *server
	lost   atomic.Bool
}

func (c *keptConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.server.mu.Lock()
	held := c.server.held
	c.server.mu.Unlock()
	<-held
	if c.lost.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// hold keeps the answers to clients from now on.
func (s *server) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = make(chan struct{})
}

// pass delivers what was kept, and keeps nothing from now on.
func (s *server) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.held:
	default:
		close(s.held)
	}
}

// reset closes the connections of clients, with what was kept, and keeps nothing from now on.
func (s *server) reset() {
	s.mu.Lock()
	for _, c := range s.conns {
		c.lost.Store(true)
		_ = c.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.pass()
}

// waitForKeys waits until the lock has that many keys.
func (s *server) waitForKeys(t *testing.T, name string, want int64) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; {
		found, err := s.admin.Get(t.Context(), fmt.Sprintf("%s/%s/", defaultRoot, name), clientv3.WithPrefix())
		if err == nil && found.Count == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("keys %v (%v), want %d", found, err, want)
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // polling: there is no event
	}
}

// waitForWatchers waits until clients watch that many keys: each waiter has seen who is before it.
func (s *server) waitForWatchers(t *testing.T, want int) {
	t.Helper()
	line := fmt.Sprintf("\netcd_debugging_mvcc_watcher_total %d\n", want)
	for end := time.Now().Add(testTimeout); ; {
		metrics, err := s.metrics(t.Context())
		if strings.Contains(metrics, line) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no line %q in the metrics (%v)", line, err)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polling: there is no event
	}
}

func (s *server) metrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/metrics", nil)
	if err != nil {
		return "", err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	return string(text), err
}
