package bubble_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/bubble"
)

// pass sleeps in virtual time.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
}

func TestAYearPassesImmediately(t *testing.T) {
	var passed time.Duration
	err := bubble.Run(func() {
		began := time.Now()
		pass(365 * 24 * time.Hour)
		passed = time.Since(began)
	})
	if err != nil || passed != 365*24*time.Hour {
		t.Errorf("a year lasted %v, error %v", passed, err)
	}
}

// TestAGoroutineMayEndAfterTheFunction: the code of a killed client still sends a release until its timeout.
func TestAGoroutineMayEndAfterTheFunction(t *testing.T) {
	if err := bubble.Run(func() { go pass(30 * time.Second) }); err != nil {
		t.Error(err)
	}
}

func TestRunReturnsErrors(t *testing.T) {
	for name, c := range map[string]struct {
		f    func()
		want string
	}{
		"a panic":        {func() { panic("oh no") }, "oh no"},
		"an early end":   {func() { runtime.Goexit() }, "Goexit"},
		"a deadlock":     {func() { <-make(chan int) }, "deadlock"},
		"left behind":    {func() { go func() { <-make(chan int) }() }, "blocked goroutines remain"},
		"a panic, later": {func() { pass(time.Hour); panic(errors.New("so late")) }, "so late"},
	} {
		t.Run(name, func(t *testing.T) {
			err := bubble.Run(c.f)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	if err := bubble.Check(); err != nil {
		t.Error(err)
	}
}

func TestConcurrentBubbles(t *testing.T) {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := bubble.Run(func() { pass(time.Hour) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// blockForEver waits for a mutex that is unlocked only after the watchdog has reported a stall.
func blockForEver(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
}

// awaitReport waits for a report with these texts while no goroutine runs. On a busy machine others come before.
func awaitReport(t *testing.T, stalls <-chan bubble.Stall, want ...string) {
	t.Helper()
	limit, last := time.After(2*time.Minute), "nothing"
	for {
		select {
		case s := <-stalls:
			last = s.Advice()
			if !s.Busy && !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(last, text) }) {
				return
			}
		case <-limit:
			t.Errorf("the watchdog reported %s\nwant %q, and no goroutine that runs", last, want)
			return
		}
	}
}

// TestWatchdogReportsBlockedGoroutine: a goroutine in the bubble waits for a mutex that is held outside it.
func TestWatchdogReportsBlockedGoroutine(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var dog bubble.Watchdog
	stalls := make(chan bubble.Stall, 1)
	go dog.Watch(ctx, 50*time.Millisecond, func(s bubble.Stall) {
		select {
		case stalls <- s:
		default:
		}
	})
	var mu sync.Mutex
	mu.Lock() // held outside the bubble: nothing in it can unlock it
	done := make(chan error, 1)
	go func() {
		done <- bubble.Run(func() {
			beating, stopBeat := context.WithCancel(context.Background())
			var heart sync.WaitGroup
			heart.Go(func() { dog.Beat(beating) })
			pass(time.Second)
			blockForEver(&mu)
			stopBeat()
			heart.Wait()
		})
	}()
	awaitReport(t, stalls, "sync.Mutex.Lock", "blockForEver", "bubble_test.go:", "DNS")
	mu.Unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWatchdogIsQuietWhileTimePasses(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var dog bubble.Watchdog
	go dog.Watch(ctx, 5*time.Second, func(s bubble.Stall) { t.Errorf("reported %s", s.Advice()) })
	err := bubble.Run(func() {
		beating, stopBeat := context.WithCancel(context.Background())
		var heart sync.WaitGroup
		heart.Go(func() { dog.Beat(beating) })
		pass(24 * time.Hour)
		stopBeat()
		heart.Wait()
	})
	if err != nil {
		t.Error(err)
	}
}
