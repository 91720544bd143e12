package wire

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/tasks"
)

// TestPipeWhoseSendersHang: calls behind senders that hang go out over another connection, without a further call over
// one more, and with further calls over as many as there may be. Calls behind these were never sent: a caller that
// leaves knows that for certain.
func TestPipeWhoseSendersHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bg := tasks.New(context.Canceled)
		hang, sent := make(chan struct{}), 0
		var mu sync.Mutex
		p := &Pipe{bg: bg, send: func(_ context.Context, calls []Call) []Answer {
			mu.Lock()
			sent += len(calls)
			mu.Unlock()
			<-hang
			return make([]Answer, len(calls))
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		results := make(chan error, maxSenders+3)
		ask := func() {
			wg.Go(func() { results <- p.do(ctx, Call{}).Err })
			synctest.Wait()
		}
		expect := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if sent != want {
				t.Errorf("%s: %d calls were sent, want %d", when, sent, want)
			}
		}
		for range minSenders + 1 {
			ask()
		}
		expect("at once", minSenders)
		<-time.After(senderHangs + time.Millisecond)
		expect("when the senders hang", minSenders+1)
		ask()
		ask()
		expect("right after that", minSenders+1)
		<-time.After(senderHangs + time.Millisecond)
		expect("when that one hangs too", minSenders+1)
		for range maxSenders - minSenders - 1 {
			ask() // the first goes out together with the two
			<-time.After(senderHangs + time.Millisecond)
		}
		expect("over all connections", maxSenders+2)
		ask()
		<-time.After(10 * senderHangs)
		expect("with no connection left", maxSenders+2)
		cancel()
		outcomes := make(map[Outcome]int)
		for range maxSenders + 3 {
			outcomes[Classify(<-results).Outcome]++
		}
		if outcomes[Unknown] != maxSenders+2 || outcomes[NotExecuted] != 1 {
			t.Errorf("outcomes %v, want %d unknown and 1 not executed", outcomes, maxSenders+2)
		}
		close(hang)
		wg.Wait()
		if err := bg.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if a := p.do(context.Background(), Call{}); a.Err == nil || Classify(a.Err).Reason != Closed {
			t.Errorf("after close: %v, want that it is closed", a.Err)
		}
	})
}

// slowProcessor replies after a while.
type slowProcessor time.Duration

func (s slowProcessor) Process(context.Context, redis.Cmder) error {
	<-time.After(time.Duration(s))
	return nil
}

// TestSlowReplyEndsDirectCalls: after a reply that took long, the next caller does not send its call itself, until a
// pipeline was quick.
func TestSlowReplyEndsDirectCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pipe{bg: tasks.New(context.Canceled), rdb: slowProcessor(directTimeout),
			send: func(_ context.Context, calls []Call) []Answer { return make([]Answer, len(calls)) }}
		c := Call{Script: NewScript("return 1"), Keys: []string{"k"}}
		direct := func() bool {
			begun := p.beginDirect(t.Context(), &c)
			if begun {
				p.leaveDirect(false)
			}
			return begun
		}
		p.brief = p.rdb
		if !direct() {
			t.Fatal("the first caller does not send by itself")
		}
		for _, want := range []bool{false, true} { // the second call goes out in a pipeline
			if a := p.do(t.Context(), c); a.Err != nil {
				t.Fatal(a.Err)
			}
			synctest.Wait()
			if got := direct(); got != want {
				t.Errorf("the next caller sends by itself: %v, want %v", got, want)
			}
		}
	})
}

// dialer has a connection after a while, or fails with the error of a context that ended before.
type dialer time.Duration

func (d dialer) Process(ctx context.Context, cmd redis.Cmder) error {
	select {
	case <-ctx.Done():
		cmd.SetErr(ctx.Err())
	case <-time.After(time.Duration(d)):
		cmd.(noRetry).SetVal("reply")
	}
	return cmd.Err()
}

// TestDirectCallWithoutConnection: a caller that sends its call itself passes it to a sender if there is no connection
// after directTimeout, and leaves at the end of its context. Later calls, which find a connection, are sent once.
func TestDirectCallWithoutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Duration
		begun := time.Now()
		p := &Pipe{bg: tasks.New(context.Canceled), rdb: dialer(time.Hour), brief: dialer(time.Hour),
			send: func(ctx context.Context, calls []Call) []Answer {
				sent = append(sent, time.Since(begun))
				<-time.After(time.Second)
				return make([]Answer, len(calls))
			}}
		ctx := &LazyTimeout{Context: t.Context(), End: begun.Add(5 * directTimeout)}
		a := p.do(ctx, Call{Script: NewScript("return 1"), Keys: []string{"k"}})
		if took := time.Since(begun); took != 5*directTimeout || Classify(a.Err).Outcome != Unknown {
			t.Errorf("after %v: %v, want that the outcome is unknown after %v", took, a.Err, 5*directTimeout)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if len(sent) != 1 || sent[0] != directTimeout {
			t.Errorf("sent after %v, want once after %v", sent, directTimeout)
		}
		p.slow, p.rdb, p.brief = false, dialer(directTimeout*2/5), dialer(directTimeout*2/5)
		for range 3 { // the second and the third use the alarm of the first
			if a := p.do(t.Context(), Call{Script: NewScript("return 1"), Keys: []string{"k"}}); a.Err != nil {
				t.Error(a.Err)
			}
		}
		if len(sent) != 1 {
			t.Errorf("sent after %v, want that later calls are sent by their callers", sent)
		}
	})
}
