package lock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/random"
	"github.com/lockchaos/lockchaos/lock/internal/tasks"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// A lazyTimeout ends at its deadline or with its parent, whether its timer was
// started or not.
func TestLazyTimeout(t *testing.T) {
	t.Parallel()
	newTimeout := func(parent context.Context) *wire.LazyTimeout {
		return &wire.LazyTimeout{Context: parent, End: time.Now().Add(time.Second)}
	}
	synctest.Test(t, func(t *testing.T) {
		l := newTimeout(context.Background())
		<-l.Done()
		if left := time.Until(l.End); left != 0 || !errors.Is(l.Err(), context.DeadlineExceeded) {
			t.Errorf("done %v before its deadline, with %v", left, l.Err())
		}
		if l = newTimeout(context.Background()); l.Err() != nil {
			t.Errorf("before its deadline: %v", l.Err())
		}
		<-time.After(time.Second) // virtual time
		if !errors.Is(l.Err(), context.DeadlineExceeded) || l.Started() {
			t.Errorf("at its deadline: %v, timer started: %v", l.Err(), l.Started())
		}
		for _, started := range []bool{true, false} {
			parent, cancel := context.WithCancelCause(context.Background())
			l = newTimeout(parent)
			if started {
				l.Done()
			}
			cancel(ErrClosed)
			synctest.Wait()
			if !errors.Is(l.Err(), context.Canceled) || !errors.Is(context.Cause(l), ErrClosed) {
				t.Errorf("timer started %v, parent ended: %v, %v", started, l.Err(), context.Cause(l))
			}
			<-l.Done()
			l.Free()
		}
	})
}

// A last try that was cut short may have been sent: the outcome is unknown, whatever the tries before it said. One that
// was not sent leaves it as it was.
func TestRetriesCutShort(t *testing.T) {
	t.Parallel()
	dial := &requestError{wire.NotExecuted, errors.New("dial: i/o timeout")}
	for _, last := range []*requestError{{wire.Unknown, errors.New("no reply yet")}, {wire.NotExecuted, context.DeadlineExceeded}} {
		synctest.Test(t, func(t *testing.T) {
			bg, stop := context.WithCancel(context.Background())
			defer stop()
			c := &Client{o: Options{Timeout: time.Second}, random: random.New(nil), bg: &tasks.Group{Context: bg}}
			r := c.retry(context.Background())
			if again, err := r.next(dial); !again {
				t.Fatalf("not sent again: %v", err)
			}
			<-time.After(time.Second) // virtual time
			again, err := r.next(last)
			if again || outcomeOf(err) != last.outcome || !errors.Is(err, dial) {
				t.Errorf("after %v: sent again %v, %v, outcome %d", last, again, err, outcomeOf(err))
			}
		})
	}
}
