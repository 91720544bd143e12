package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
)

// backend is an etcd server.
type backend struct {
	addr  string
	admin *clientv3.Client
}

func startServer(t testing.TB) *sessiontest.Proxied { return sessiontest.Behind(t, startBackend(t)) }

// startBackend starts a server of its own for a test, with more options of its command line.
func startBackend(t testing.TB, options ...string) *backend { return startMembers(t, 1, options...) }

// startMembers starts a cluster. The first member is the one of Addr; admin is connected to all.
func startMembers(t testing.TB, members int, options ...string) *backend {
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
	var addrs, peers, cluster []string
	for i := range members {
		addrs, peers = append(addrs, locktest.FreeAddr(t)), append(peers, "http://"+locktest.FreeAddr(t))
		cluster = append(cluster, fmt.Sprintf("n%d=%s", i, peers[i]))
	}
	for i := range members {
		client := "http://" + addrs[i]
		cmd := exec.Command(program, append(options, fmt.Sprintf("--name=n%d", i), "--data-dir="+t.TempDir(),
			"--logger=zap", "--log-outputs=/dev/null", "--listen-client-urls="+client, "--advertise-client-urls="+client,
			"--listen-peer-urls="+peers[i], "--initial-advertise-peer-urls="+peers[i],
			"--initial-cluster="+strings.Join(cluster, ","), "--heartbeat-interval=20",
			fmt.Sprintf("--election-timeout=%d", members*100))...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	b := &backend{addr: addrs[0]}
	b.admin = connect(t, addrs...)
	locktest.Eventually(t, sessiontest.Timeout, "etcd serves", func() bool {
		_, err := b.Entries(t.Context(), "")
		return err == nil
	})
	return b
}

func connect(t testing.TB, addrs ...string) *clientv3.Client {
	t.Helper()
	return connectWith(t, addrs)
}

func connectWith(t testing.TB, addrs []string, o ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: addrs, Logger: zap.NewNop(),
		DialOptions: append(o,
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond},
			}),
		),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func open(t testing.TB, addr string, o Options) *Client {
	t.Helper()
	return openWith(t, addr, o)
}

func openWith(t testing.TB, addr string, o Options, dial ...grpc.DialOption) *Client {
	t.Helper()
	o.Lease, o.Timeout = cmp.Or(o.Lease, sessiontest.LongLease), cmp.Or(o.Timeout, sessiontest.Timeout)
	c, err := Open(connectWith(t, []string{addr}, dial...), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// clientOf is a client that has its connection for itself.
func clientOf(c *Client) sessiontest.Client {
	disconnect := sync.OnceValue(c.etcd.Close)
	return sessiontest.ClientOf(c, func(ctx context.Context) error { return errors.Join(c.Close(ctx), disconnect()) })
}

func (b *backend) Addr() string { return b.addr }

// Open makes a client. Its waiters look again in every part of the lease.
func (*backend) Open(t testing.TB, addr string, o sessiontest.Options) sessiontest.Client {
	t.Helper()
	if o.EventsOnly {
		o.Lease = time.Hour
	}
	return clientOf(open(t, addr, Options{Lease: o.Lease, Observe: o.Observe, OnLost: func(*Hold) {
		if o.OnLost != nil {
			o.OnLost()
		}
	}}))
}

func (*backend) Undone(err error) bool  { return Undone(err) }
func (*backend) UndoesUnanswered() bool { return true }

// Entries are the keys of a lock, or of all.
func (b *backend) Entries(ctx context.Context, lock string) (keys []string, err error) {
	prefix := defaultRoot + "/"
	if lock != "" {
		prefix += lock + "/"
	}
	found, err := b.admin.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	for _, kv := range found.Kvs {
		if key := string(kv.Key); !strings.HasPrefix(key, defaultRoot+"/.") { // no mark
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Watched counts all watchers.
func (b *backend) Watched(ctx context.Context, w sessiontest.Watches) (bool, error) {
	metrics, err := b.metrics(ctx)
	return strings.Contains(metrics, fmt.Sprintf("\netcd_debugging_mvcc_watcher_total %d\n", w.Held+w.One+w.All)), err
}

func (b *backend) Remove(ctx context.Context, lock string) error {
	_, err := b.admin.Delete(ctx, defaultRoot+"/"+lock+"/", clientv3.WithPrefix())
	return err
}

func (b *backend) metrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr+"/metrics", nil)
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
