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

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/lock"
)

// unreplied is the fate of a request whose reply does not come.
type unreplied int32

const (
	delivered      unreplied = iota // nothing: the reply comes
	lostRequest                     // it does not reach the servers, and the lease ends before the next one
	lostReply                       // it is executed
	lostWithLease                   // it is executed, and the lease ends before the next one
	lostAlone                       // it does not reach the servers: the next one does
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
		"the request is lost":                     {lostAlone, nil},
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
				if what == lostAlone {
					return status.Error(codes.Unavailable, "the request is lost")
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
			// The mark and the key of an earlier release are used again, and prove nothing about this one.
			earlier := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
			sessiontest.Release(t, earlier)
			h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
			if h.claim.id != earlier.claim.id {
				t.Error("the key of the earlier hold is not used again")
			}
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
			// The request that has no reply may still be executed, and would delete the key of another hold.
			if id := h.claim.session.ids.Take(); id == h.claim.id {
				t.Error("the key is used again although a request of its release was not answered")
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

// TestKeysAreUsedAgain: requests for a lock one after another have one key. A server keeps deleted keys in its index,
// and each request to a lock would take longer than the one before it.
func TestKeysAreUsedAgain(t *testing.T) {
	b := startBackend(t)
	c := openWith(t, b.addr, Options{})
	keys := map[string]bool{}
	hold := func() *Hold {
		h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
		keys[h.claim.entries[0].key()] = true
		return h
	}
	for range 5 {
		sessiontest.Release(t, hold())
	}
	if len(keys) != 1 {
		t.Errorf("five holds had %d keys, want one", len(keys))
	}

	first := hold()
	waiter, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := c.Mutex("orders").Acquire(waiter, "b") // which has a key of its own, and gives it up
		failed <- err
	}()
	locktest.Eventually(t, sessiontest.Timeout, "another request waits", func() bool {
		entries, err := b.Entries(t.Context(), "orders")
		return err == nil && len(entries) == 2
	})
	cancel()
	if err := <-failed; err == nil { // ErrHeld, or the context's if the reply to the creation was still to come
		t.Error("a second request has got the lock")
	}
	if err := first.Err(); err != nil {
		t.Errorf("the hold has ended: %v", err)
	}
	sessiontest.Release(t, first)
}
