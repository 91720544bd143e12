package bubble_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/bubble"
)

// pass lets virtual time go by.
func pass(d time.Duration) {
	// not a wait in real time: the clock jumps
	time.Sleep(d)
}

func TestAYearPassesAtOnce(t *testing.T) {
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

func TestRunTellsWhatWentWrong(t *testing.T) {
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

func TestManyBubblesAtOnce(t *testing.T) {
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

// blockForEver waits for a mutex that its holder gives back only when another bubble's end is told.
func blockForEver(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
}

// TestWatchdogNamesTheCulprit: the holder of a mutex sleeps in virtual time, another waits for it.
func TestWatchdogNamesTheCulprit(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var dog bubble.Watchdog
	told := make(chan bubble.Stall, 1)
	go dog.Watch(ctx, 50*time.Millisecond, func(s bubble.Stall) {
		select {
		case told <- s:
		default:
		}
	})
	var mu sync.Mutex
	mu.Lock() // this goroutine is outside: nothing in the bubble can ever open it
	done := make(chan error, 1)
	go func() {
		done <- bubble.Run(func() {
			beating, calm := context.WithCancel(context.Background())
			var heart sync.WaitGroup
			heart.Go(func() { dog.Beat(beating) })
			pass(time.Second)
			blockForEver(&mu)
			calm()
			heart.Wait()
		})
	}()
	select {
	case s := <-told:
		advice := s.Advice()
		for _, want := range []string{"sync.Mutex.Lock", "blockForEver", "bubble_test.go:", "DNS"} {
			if !strings.Contains(advice, want) {
				t.Errorf("the advice lacks %q:\n%s", want, advice)
			}
		}
		if s.Busy {
			t.Errorf("nobody was at work, yet: %v", s)
		}
	case <-time.After(20 * time.Second):
		t.Error("the watchdog told nothing")
	}
	mu.Unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWatchdogIsQuietWhileTimePasses(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var dog bubble.Watchdog
	go dog.Watch(ctx, 5*time.Second, func(s bubble.Stall) { t.Errorf("told %s", s.Advice()) })
	err := bubble.Run(func() {
		beating, calm := context.WithCancel(context.Background())
		var heart sync.WaitGroup
		heart.Go(func() { dog.Beat(beating) })
		pass(24 * time.Hour)
		calm()
		heart.Wait()
	})
	if err != nil {
		t.Error(err)
	}
}
