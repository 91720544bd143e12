package lock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Undone reports whether a failed acquire may have held the lock: a waiter that was only queued has not, a waiter to
// which the lock was handed over unnoticed has, and a waiter that lost touch for longer than its place lasts may have.
func TestUndoneIsAboutGrants(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		during func(t *testing.T, rdb *redis.Client, m *FairMutex, first *Hold)
		want   bool
	}{
		{"queued only", func(*testing.T, *redis.Client, *FairMutex, *Hold) {}, false},
		{"handed over", func(t *testing.T, rdb *redis.Client, m *FairMutex, first *Hold) {
			if err := rdb.Do(context.Background(), "ACL", "SETUSER", "default", "-publish").Err(); err != nil {
				t.Fatal(err)
			}
			release(t, first)
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rdb := startRedis(t).Dial(t)
			c := newTestClient(t, rdb, Options{PollMax: time.Hour})
			m := c.FairMutex("undone")
			first := acquire(t, m, WithLease(time.Minute))
			ctx, cancel := context.WithCancel(context.Background())
			failed := make(chan error, 1)
			go func() {
				_, err := m.Acquire(ctx, WithOwner("waiter"))
				failed <- err
			}()
			asleep(t, c, grantChannel("undone"), 1)
			tc.during(t, rdb, m, first)
			cancel()
			if err := <-failed; !Definite(err) || Undone(err) != tc.want {
				t.Errorf("%v: definite %v, undone %v, want %v", err, Definite(err), Undone(err), tc.want)
			}
		})
	}
}

// A grant that may have expired before it was looked for leaves it unknown.
func TestDoubt(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	lost := &requestError{wire.Unknown, context.DeadlineExceeded}
	mutex, queued := &claim{lease: 1000}, &claim{lease: 60_000, waiterTTL: 1000}
	for _, tc := range []struct {
		name  string
		notes func(d *maybeGranted)
		want  bool
	}{
		{"nothing was sent", func(*maybeGranted) {}, false},
		{"lost within the lease", func(d *maybeGranted) { d.note(mutex, ago(900*time.Millisecond), lost) }, false},
		{"lost before that", func(d *maybeGranted) {
			d.note(mutex, ago(1100*time.Millisecond), lost)
			d.note(mutex, now, nil)
		}, true},
		{"no lease", func(d *maybeGranted) { d.note(&claim{}, ago(time.Hour), lost) }, false},
		{"queued in time", func(d *maybeGranted) { d.note(queued, ago(900*time.Millisecond), nil) }, false},
		{"no heartbeat since", func(d *maybeGranted) { d.note(queued, ago(1100*time.Millisecond), nil) }, true},
		{"no heartbeat for a while", func(d *maybeGranted) {
			d.note(queued, ago(1100*time.Millisecond), nil)
			d.note(queued, now, nil)
		}, true},
		{"a heartbeat was lost", func(d *maybeGranted) { d.note(queued, ago(1100*time.Millisecond), lost) }, true},
	} {
		var d maybeGranted
		if tc.notes(&d); d.mayHaveExpired(now) != tc.want {
			t.Errorf("%s: mayHaveExpired is %v", tc.name, !tc.want)
		}
	}
}
