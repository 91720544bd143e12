package etcd

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/lock"
)

// acquireWithin fails the test if the lock is not granted soon.
func acquireWithin(t *testing.T, c *Client, name string) *Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sessiontest.Timeout)
	defer cancel()
	h, err := c.Mutex(name).Acquire(ctx, "other")
	if err != nil {
		t.Fatalf("nobody holds %q, and it is not granted: %v", name, err)
	}
	return h
}

// TestRefusedRemovals: servers that have too many requests refuse a deletion; the key is removed nevertheless, while
// the session that has created it lives.
func TestRefusedRemovals(t *testing.T) {
	b := startBackend(t)
	var refuse atomic.Int32
	c := openWith(t, b.addr, Options{}, grpc.WithUnaryInterceptor(func(ctx context.Context, method string,
		in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if txn, ok := in.(*etcdserverpb.TxnRequest); ok && len(txn.Failure) > 0 {
			last := txn.Failure[len(txn.Failure)-1]
			if last.GetRequestDeleteRange() != nil && refuse.Add(-1) >= 0 {
				return rpctypes.ErrGRPCRequestTooManyRequests
			}
		}
		return call(ctx, method, in, out, conn, o...)
	}))
	m := c.Mutex("orders")
	for name, fail := range map[string]func(held *Hold) error{
		"release": func(held *Hold) error { return held.Release(t.Context()) },
		"undo": func(held *Hold) error {
			_, err := m.TryAcquire(t.Context(), "b")
			refuse.Store(0)
			sessiontest.Release(t, held)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := sessiontest.Acquire(t, m.Acquire, "a")
			refuse.Store(3)
			if err := fail(h); !errors.Is(err, lock.ErrUnknown) {
				t.Errorf("got %v, want ErrUnknown", err)
			}
			other := open(t, b.addr, Options{})
			sessiontest.Release(t, acquireWithin(t, other, "orders"))
		})
	}
}

// TestKeyOfAnUnansweredDeletion: a deletion is not answered, the next one is refused, and the third is executed. The
// first may still be executed, and would delete the key of another hold, so the key is not used again.
func TestKeyOfAnUnansweredDeletion(t *testing.T) {
	b := startBackend(t)
	var deletions atomic.Int32
	c := openWith(t, b.addr, Options{}, grpc.WithUnaryInterceptor(func(ctx context.Context, method string,
		in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if txn, ok := in.(*etcdserverpb.TxnRequest); ok && len(txn.Failure) > 0 &&
			txn.Failure[len(txn.Failure)-1].GetRequestDeleteRange() != nil {
			switch deletions.Add(1) {
			case 1:
				return status.Error(codes.Unavailable, "the request is lost")
			case 2:
				return rpctypes.ErrGRPCRequestTooManyRequests
			}
		}
		return call(ctx, method, in, out, conn, o...)
	}))
	h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrUnknown) {
		t.Errorf("release: %v, want ErrUnknown", err)
	}
	sessiontest.Release(t, acquireWithin(t, c, "orders"))
	if err := c.Close(t.Context()); err != nil { // waits for the background
		t.Fatal(err)
	}
	for id := h.claim.session.ids.Take(); id != ""; id = h.claim.session.ids.Take() {
		if id == h.claim.id {
			t.Error("the key is used again although a request of its release was not answered")
		}
	}
	if n := deletions.Load(); n < 3 {
		t.Errorf("%d deletions were sent", n)
	}
}

// TestFullDatabase: a database whose quota is used up executes deletions alone. A hold is released, its lock has no
// keys, and it can be acquired as soon as there is room again. An acquire fails, and leaves no key.
func TestFullDatabase(t *testing.T) {
	b := startBackend(t, "--quota-backend-bytes=2000000")
	ctx := t.Context()
	c := open(t, b.addr, Options{})
	h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
	var err error
	for err == nil {
		_, err = b.admin.Put(ctx, "fill", strings.Repeat("x", 100_000))
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatal(err)
	}
	if err := h.Release(ctx); err != nil {
		t.Errorf("release: %v", err)
	}
	if h, err := c.Mutex("bills").Acquire(ctx, "a"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("acquire: %v, %v", h, err)
	}
	keys, err := b.Entries(ctx, "")
	if err != nil || len(keys) > 0 {
		t.Errorf("keys are left: %v (%v)", keys, err)
	}

	last, err := b.admin.Get(ctx, "fill", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.admin.Compact(ctx, last.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.admin.Defragment(ctx, b.addr); err != nil {
		t.Fatal(err)
	}
	if _, err := b.admin.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"orders", "bills"} {
		sessiontest.Release(t, acquireWithin(t, c, name))
	}
}

// TestFullByAcquire: the request that uses up the quota is executed although its answer is that there is no room.
func TestFullByAcquire(t *testing.T) {
	b := startBackend(t)
	var full atomic.Bool
	c := openWith(t, b.addr, Options{}, grpc.WithUnaryInterceptor(func(ctx context.Context, method string,
		in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
		err := call(ctx, method, in, out, conn, o...)
		if err == nil && method == "/etcdserverpb.KV/Txn" && full.CompareAndSwap(true, false) {
			return rpctypes.ErrGRPCNoSpace
		}
		return err
	}))
	sessiontest.Release(t, acquireWithin(t, c, "earlier")) // begins the session
	full.Store(true)
	if _, err := c.Mutex("orders").Acquire(t.Context(), "a"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("acquire: %v", err)
	}
	sessiontest.Release(t, acquireWithin(t, open(t, b.addr, Options{}), "orders"))
}
