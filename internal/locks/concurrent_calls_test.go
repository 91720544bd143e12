package locks

import (
	"context"
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/client"
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
