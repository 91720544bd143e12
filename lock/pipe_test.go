package lock

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestPipeWhoseSendersHang: calls behind senders that hang go out over another connection, without a further call over
// one more, and with further calls over as many as there may be. What waits behind those was never sent: a caller that
// leaves knows that for certain.
func TestPipeWhoseSendersHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bg := newBackground(context.Canceled)
		hang, sent := make(chan struct{}), 0
		var mu sync.Mutex
		p := &pipe{bg: bg, send: func(_ context.Context, calls []call) []answer {
			mu.Lock()
			sent += len(calls)
			mu.Unlock()
			<-hang
			return make([]answer, len(calls))
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		results := make(chan error, maxSenders+3)
		ask := func() {
			wg.Go(func() { results <- p.do(ctx, call{}).err })
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
		outcomes := make(map[outcome]int)
		for range maxSenders + 3 {
			outcomes[classify(<-results).outcome]++
		}
		if outcomes[unknown] != maxSenders+2 || outcomes[notExecuted] != 1 {
			t.Errorf("outcomes %v, want %d unknown and 1 not executed", outcomes, maxSenders+2)
		}
		close(hang)
		wg.Wait()
		if err := bg.close(context.Background()); err != nil {
			t.Error(err)
		}
		if a := p.do(context.Background(), call{}); a.err == nil || classify(a.err).reason != closed {
			t.Errorf("after close: %v, want that it is closed", a.err)
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
		p := &pipe{bg: newBackground(context.Canceled), rdb: slowProcessor(directTimeout),
			send: func(_ context.Context, calls []call) []answer { return make([]answer, len(calls)) }}
		c := call{script: makeScript("return 1"), keys: []string{"k"}}
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
			if a := p.do(t.Context(), c); a.err != nil {
				t.Fatal(a.err)
			}
			synctest.Wait()
			if got := direct(); got != want {
				t.Errorf("the next caller sends by itself: %v, want %v", got, want)
			}
		}
	})
}
