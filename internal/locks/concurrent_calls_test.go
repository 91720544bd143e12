package locks

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock"
)

// tokenHold is a hold with a token that servers renew, or not.
type tokenHold struct {
	held
	token int64
	lost  error
}

func (h tokenHold) Token() int64                { return h.token }
func (h tokenHold) Renew(context.Context) error { return h.lost }
func (h tokenHold) Count() int                  { return 1 }

// TestHoldsOfOneOwnerHaveOneToken has goroutines of one owner hold a lock at the same time.
func TestHoldsOfOneOwnerHaveOneToken(t *testing.T) {
	lost := errors.New("lost")
	for _, row := range []struct {
		name  string
		other tokenHold
		wrong bool
	}{
		{"the same token", tokenHold{token: 7}, false},
		{"another token", tokenHold{token: 8}, true},
		{"another token, of a grant after a loss", tokenHold{token: 8, lost: lost}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := sameToken(t.Context(), tokenHold{token: 7}, row.other)
			if errors.Is(err, client.ErrContradiction) != row.wrong {
				t.Errorf("got %v, want a contradiction: %v", err, row.wrong)
			}
		})
	}
}

// TestBothCallsFail has both acquires of one owner fail, one of them with an unknown outcome: so has the call.
func TestBothCallsFail(t *testing.T) {
	for _, row := range [][2]error{{lock.ErrUnknown, lock.ErrHeld}, {lock.ErrHeld, lock.ErrUnknown}} {
		l := &library{}
		_, err := l.join(t.Context(), acquired[held]{err: row[0]}, acquired[held]{err: row[1]})
		if !errors.Is(err, lock.ErrUnknown) {
			t.Errorf("of %v and %v: %v", row[0], row[1], err)
		}
	}
}

// TestFirstHoldEnds has two acquires of one owner, of which the first is granted, and its hold ends while the second is
// waited for. If its lease has ended, the lock is acquired again; if the client was closed, the acquire has got its
// hold, which may be left at the server.
func TestFirstHoldEnds(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(l *library, again func(owner string) (held, error)) error
		want int32 // acquires
	}{
		"with its lease": {func(_ *library, again func(string) (held, error)) error {
			h, err := again("b") // when the server has ended it
			if err != nil {
				return err
			}
			return h.Release(t.Context())
		}, 3},
		"by Close": {func(l *library, _ func(string) (held, error)) error { return l.lock.Close(t.Context()) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := onServer(t, reentrantSpec(), locktest.StartServer(t).Addr, 1, nil)
			l, _ := n.locker.(*library)
			a := client.Acquire{Key: "k", Owner: "a", Wait: time.Second, Lease: 200 * time.Millisecond}
			var calls atomic.Int32
			acquire, asked, first := l.acquire, time.Now(), make(chan held, 1)
			l.acquire = func(ctx context.Context, c *lock.Client, a client.Acquire) (held, error) {
				if calls.Add(1) == 2 {
					h := <-first
					if err := row.end(l, func(owner string) (held, error) {
						a.Owner = owner
						return acquire(ctx, c, a)
					}); err != nil {
						return nil, err
					}
					<-h.Done()
					return nil, lock.ErrHeld
				}
				h, err := acquire(ctx, c, a)
				first <- h
				return h, err
			}
			ctx := context.WithValue(t.Context(), acquireKey{}, acquireCall{reentrant: true})
			h, err := l.acquireTwice(ctx, a)
			if err != nil || calls.Load() != row.want {
				t.Fatalf("%d acquires, want %d; %v", calls.Load(), row.want, err)
			}
			if err := l.checkGrant(h, a, "a", asked); err != nil {
				t.Error(err)
			}
		})
	}
}
