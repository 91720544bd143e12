// Package samplelocks has eight small locks as users of go-redis write them, and planted bugs in each. Package simtest
// is measured with them: it should convict the bugs, and acquit the locks without a bug.
//
// Read [Lock] first. The locks poll, but for one whose releases wake its waiters; the fair one is there with two
// intervals between its polls.
package samplelocks

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/simtest"
)

// Lock is a lock and its planted bugs.
type Lock struct {
	Name   string
	Quorum bool // it needs several masters
	Can    promise.Set
	Bugs   map[string]string // the effect of each
	every  time.Duration     // between two polls of a waiter; 0: 10 ms
	// persistent are the keys that it leaves without an expiry; nil: none.
	persistent func(key string) []string
	open       func(b base) client.Locker
}

// All are the locks.
func All() []Lock {
	return []Lock{plainLock(), reentrantLock(), redLock(), fairLock(), slowFairLock(), semaphoreLock(), rwLock(),
		fencedLock(), wakesLock()}
}

var (
	errBusy    = errors.New("busy")               // a try that was refused, or a wait that ran out
	errUnknown = errors.New("outcome is unknown") // a request without a reply
)

// base has the common parts of the locks.
type base struct {
	masters []*redis.Client
	bug     string        // empty: none
	every   time.Duration // between two polls
	notify  func(client.Reply)
}

func (b *base) rdb() *redis.Client { return b.masters[0] }

// Close closes the connections.
func (b *base) Close(context.Context) error {
	var errs error
	for _, m := range b.masters {
		errs = errors.Join(errs, m.Close())
	}
	return errs
}

// With is the lock with one of its bugs; empty: without.
func (l Lock) With(bug string) simtest.Lock {
	return simtest.Lock{
		Name: "user-" + l.Name,
		Can:  l.Can,

		PersistentKeys: l.persistent,
		Open: func(s client.Setup, notify func(client.Reply)) (client.Locker, error) {
			b := base{bug: bug, every: cmp.Or(l.every, 10*time.Millisecond), notify: notify}
			for _, addr := range s.Endpoints.Addrs {
				b.masters = append(b.masters, redis.NewClient(&redis.Options{
					Addr: addr, Password: s.Endpoints.Password, Dialer: s.Dial, MaxRetries: -1,
					DialTimeout: 300 * time.Millisecond, ReadTimeout: 300 * time.Millisecond,
					MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
				}))
			}
			return l.open(b), nil
		},
		Definite: func(err error) bool { return errors.Is(err, errBusy) },
		Code: func(err error) string {
			switch {
			case errors.Is(err, errBusy):
				return history.CodeHeld
			case errors.Is(err, client.ErrNotHeld):
				return "not-held"
			}
			return "error"
		},
	}
}

// poll calls try until it is granted, fails, or ctx ends, and returns when the last call began. A wait of 0 is one try.
func (b *base) poll(
	ctx context.Context, wait time.Duration, try func() (granted bool, err error),
) (start time.Time, err error) {
	for {
		start = time.Now()
		granted, err := try()
		switch {
		case err != nil:
			return start, errors.Join(errUnknown, err)
		case granted:
			return start, nil
		case wait == 0:
			return start, errBusy
		}
		select {
		case <-time.After(b.every):
		case <-ctx.Done():
			return start, errBusy
		}
	}
}

// valid is a grant until shortly before deadline, because servers count whole milliseconds, unless that has passed:
// then the server has forgotten it too.
func valid(deadline time.Time, err error) (client.Grant, error) {
	deadline = deadline.Add(-2 * time.Millisecond)
	if err == nil && !time.Now().Before(deadline) {
		err = errUnknown
	}
	return client.Grant{Deadline: deadline}, err
}

// run executes a script whose reply is a number.
func run(ctx context.Context, r *redis.Client, script string, keys []string, args ...any) (int, error) {
	return r.Eval(ctx, script, keys, args...).Int()
}

// ask executes a script that replies 0 if it refuses.
func (b *base) ask(ctx context.Context, script string, keys []string, args ...any) (bool, error) {
	n, err := run(ctx, b.rdb(), script, keys, args...)
	return n != 0, err
}

// change executes a script that changes a hold, and refuses if there is none.
func (b *base) change(ctx context.Context, script string, keys []string, args ...any) error {
	ok, err := b.ask(ctx, script, keys, args...)
	if err == nil && !ok {
		err = client.ErrNotHeld
	}
	return err
}

// ms is a duration in the unit of PX.
func ms(d time.Duration) int64 { return d.Milliseconds() }

// cleanup is a context for work after the caller has given up.
func cleanup() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 500*time.Millisecond)
}
