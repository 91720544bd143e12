package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/sessiontest"
)

// unreplied is what happens to a request whose reply does not come.
type unreplied int32

const (
	delivered      unreplied = iota // nothing: the reply comes
	lostRequest                     // it does not reach the servers, and the lease ends before the next one
	lostReply                       // it is executed
	lostWithLease                   // it is executed, and the lease ends before the next one
	deletedByOther                  // it does not reach the servers, and somebody deletes the key
)

// TestReleaseWithoutReply: the key of a hold is gone when its release is sent again. It was released if the first
// request has left its mark. Otherwise somebody has deleted it, or the lease has ended, and with it the mark. Then the
// release fails, with ErrUnknown if a keepalive has ended the session before that.
func TestReleaseWithoutReply(t *testing.T) {
	b := startBackend(t)
	for name, tt := range map[string]struct {
		next unreplied
		want error
	}{
		"the request is lost, and the lease ends": {lostRequest, lock.ErrLost},
		"the reply is lost":                       {lostReply, nil},
		"the reply is lost, and the lease ends":   {lostWithLease, lock.ErrLost},
		"the request is lost, and the key":        {deletedByOther, lock.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			var next atomic.Int32
			var end func() // ends the lease of the hold
			c := openWith(t, b.addr, Options{}, grpc.WithUnaryInterceptor(func(ctx context.Context, method string,
				in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
				what := delivered
				if method == "/etcdserverpb.KV/Txn" {
					what = unreplied(next.Swap(int32(delivered)))
				}
				if what == delivered {
					return call(ctx, method, in, out, conn, o...)
				}
				if what == deletedByOther {
					if err := b.Remove(ctx, "orders"); err != nil {
						t.Error(err)
					}
					return status.Error(codes.Unavailable, "the request is lost")
				}
				if what != lostRequest {
					if err := call(ctx, method, in, out, conn, o...); err != nil {
						t.Error(err)
					}
				}
				if what != lostReply {
					end()
				}
				return status.Error(codes.Unavailable, "the reply is lost")
			}))
			// The mark of an earlier release is used again, and proves nothing about this one.
			sessiontest.Release(t, sessiontest.Acquire(t, c.Mutex("earlier").Acquire, "a"))
			h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
			end = func() {
				if _, err := b.admin.Revoke(context.Background(), h.claim.session.id); err != nil {
					t.Error(err)
				}
			}
			next.Store(int32(tt.next))
			err := h.Release(t.Context())
			if tt.want != nil && errors.Is(err, lock.ErrUnknown) {
				t.Log("the session has ended before the second request:", err)
			} else if !errors.Is(err, tt.want) {
				t.Errorf("release: %v, want %v", err, tt.want)
			}
			if left := unreplied(next.Load()); left != delivered {
				t.Error("no request of the release was lost")
			}
		})
	}
}

// TestMarksOfReleases: a session leaves the mark of its last release alone.
func TestMarksOfReleases(t *testing.T) {
	b := startBackend(t)
	c := openWith(t, b.addr, Options{})
	for range 5 {
		sessiontest.Release(t, sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a"))
	}
	marks, err := b.admin.Get(t.Context(), defaultRoot, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(marks.Kvs) != 1 || marks.Kvs[0].Lease == 0 {
		t.Errorf("%d keys are left, want one, with a lease: %v", len(marks.Kvs), marks.Kvs)
	}
}
