package etcd

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/lock"
)

// TestUserOfOnePrefix: the documented role suffices for every kind, and for undoing an acquire. A session
// authenticates for its stream of keepalives once.
func TestUserOfOnePrefix(t *testing.T) {
	t.Parallel()
	b := startBackend(t)
	ctx, admin := t.Context(), b.admin
	_, err := admin.UserAdd(ctx, "root", "pw")
	steps := []func() error{
		func() error { _, err := admin.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := admin.RoleAdd(ctx, "locks"); return err },
		func() error {
			_, err := admin.RoleGrantPermission(ctx, "locks", "/locks/", clientv3.GetPrefixRangeEnd("/locks/"),
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := admin.UserAdd(ctx, "app", "pw"); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "app", "locks"); return err },
		func() error { _, err := admin.AuthEnable(ctx); return err },
	}
	for _, step := range steps {
		err = errors.Join(err, step())
	}
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{b.addr}, Username: "app", Password: "pw"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = etcd.Close() }()
	renewed := make(chan *Hold, 100)
	c, err := Open(etcd, Options{Lease: 12 * time.Second, OnRenewed: func(h *Hold) { renewed <- h }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()

	h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
	if _, err := c.Mutex("orders").TryAcquire(ctx, "b"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a second owner: %v, want ErrHeld", err)
	}
	left, leave := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() {
		_, err := c.Mutex("orders").Acquire(left, "b")
		gone <- err
	}()
	locktest.Eventually(t, sessiontest.Timeout, "a waiter has a key", func() bool {
		keys, err := etcd.Get(ctx, "/locks/orders/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && keys.Count == 2
	})
	leave()
	if err := <-gone; err == nil || errors.Is(err, lock.ErrUnknown) {
		t.Errorf("a waiter that leaves: %v, want an error that is certain", err)
	}
	sessiontest.Release(t, h)
	sessiontest.Release(t, sessiontest.Acquire(t, c.RW("table").Read().Acquire, "a"))
	permits, err := c.Semaphore("pool", 3).Acquire(ctx, "a", 2)
	if err != nil {
		t.Fatal(err)
	}
	const most = 10 // renewals; a busy machine may lose the stream between some of them
	for n, before := 0, -1; b.authentications(t) != before; n++ {
		if n == most {
			t.Fatalf("a client has authenticated between each two of %d keepalives", most)
		}
		before = b.authentications(t)
		for len(renewed) > 0 {
			<-renewed
		}
		<-renewed
	}
	sessiontest.Release(t, permits)
}

// authentications is how often clients have authenticated.
func (b *backend) authentications(t *testing.T) (n int) {
	t.Helper()
	metrics, err := b.metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "grpc_server_started_total") && strings.Contains(line, `grpc_method="Authenticate"`) {
			words := strings.Fields(line)
			n, err = strconv.Atoi(words[len(words)-1])
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// TestNestedRoots: a lock and the locks of a root that has its name do not exclude each other.
func TestNestedRoots(t *testing.T) {
	b := startBackend(t)
	outer, inner := open(t, b.addr, Options{}), open(t, b.addr, Options{Root: "/locks/billing"})
	invoice := sessiontest.Acquire(t, inner.Mutex("invoice-7").Acquire, "a")
	billing, err := outer.Mutex("billing").TryAcquire(t.Context(), "b")
	if err != nil {
		t.Fatalf("a free lock whose name is a root: %v", err)
	}
	if _, err := inner.Mutex("invoice-8").TryAcquire(t.Context(), "c"); err != nil {
		t.Errorf("a free lock below a held one: %v", err)
	}
	sessiontest.Release(t, billing)
	sessiontest.Release(t, invoice)
	if _, err := Open(b.admin, Options{Root: "/locks//billing"}); err == nil {
		t.Error("a root with two slashes in a row is accepted")
	}
}
