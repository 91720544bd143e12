package etcd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/lockchaos/lockchaos/lock/internal/sessiontest"
	"github.com/lockchaos/lockchaos/lock/locktest"
)

// server is an etcd server, and a relay to it.
type server struct {
	addr  string
	admin *clientv3.Client // past the relay
	relay *sessiontest.Relay
}

// startServer starts a server of its own for a test.
func startServer(t testing.TB) *server {
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
	s := &server{addr: locktest.FreeAddr(t)}
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
	s.admin = connect(t, s.addr)
	s.waitForKeys(t, "orders", 0)
	s.relay = sessiontest.StartRelay(t, s.addr)
	return s
}

func connect(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
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

// client is a client that connects through the relay.
func (s *server) client(t *testing.T, o Options) *Client {
	t.Helper()
	return open(t, connect(t, s.relay.Addr), o)
}

// direct is a client past the relay.
func (s *server) direct(t *testing.T) *Client {
	t.Helper()
	return open(t, connect(t, s.addr), Options{})
}

func open(t testing.TB, etcd *clientv3.Client, o Options) *Client {
	t.Helper()
	o.Lease, o.Timeout = cmp.Or(o.Lease, longLease), cmp.Or(o.Timeout, testTimeout)
	c, err := Open(etcd, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// waitForKeys waits until the lock has that many keys.
func (s *server) waitForKeys(t testing.TB, name string, want int64) {
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
