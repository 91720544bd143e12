package lock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The events of two holds, for metrics and in a log.
func TestEvents(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	var mu sync.Mutex
	var seen []EventKind
	lost := make(chan struct{})
	var log bytes.Buffer
	c := newTestClient(t, rdb, Options{
		Lease: 10 * time.Second,
		Observe: func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, e.Kind)
			if e.Kind == Lost {
				close(lost)
			}
			if e.Name != "events" || e.Owner == "" || e.Primitive != "lock" {
				t.Errorf("event %+v: want the lock and its owner", e)
			}
			if e.Kind == Acquired && (e.Token == 0 || e.Took <= 0 || e.Err != nil) {
				t.Errorf("event %+v: want a token, a duration and no error", e)
			}
		},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	h := acquire(t, c.FencedMutex("events"))
	if _, err := c.FencedMutex("events").TryAcquire(context.Background()); err == nil {
		t.Error("granted twice")
	}
	release(t, h)
	// The lease is longer than a stall of a busy machine: a reply after its end is no grant.
	h = acquire(t, c.FencedMutex("events"), WithLease(2*time.Second))
	<-lost
	if err := h.Release(context.Background()); err == nil {
		t.Error("a lost hold was released")
	}
	closeClient(t, c)
	mu.Lock()
	defer mu.Unlock()
	want := []EventKind{Acquired, NotAcquired, Released, Acquired, Lost, Released}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("events: %s", diff)
	}
	for _, line := range []string{"level=DEBUG msg=\"lock acquired\"", "level=WARN msg=\"lock lost\" lock=events"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log has no %s:\n%s", line, log.String())
		}
	}
}

// Permits and latches emit the same events as locks, permits also renewals and losses.
func TestEventsOfCountedKinds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	var mu sync.Mutex
	seen := map[string][]EventKind{}
	renewed, lost := make(chan *Permits, 100), make(chan *Permits, 1)
	var log bytes.Buffer
	c := newTestClient(t, rdb, Options{
		Lease:            watchedLease,
		OnPermitsRenewed: func(p *Permits) { renewed <- p },
		OnPermitsLost:    func(p *Permits) { lost <- p },
		Observe: func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind != Renewed { // there may be several
				seen[e.Primitive] = append(seen[e.Primitive], e.Kind)
			}
			if e.Name != "events-"+e.Primitive || (e.Primitive != "latch") != (e.Permits == 2 && e.Owner != "") {
				t.Errorf("event %+v: want its name, and of permits their number and id", e)
			}
			if e.Took <= 0 && e.Kind != Renewed && e.Kind != Lost {
				t.Errorf("event %+v: want a duration", e)
			}
		},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	for kind, build := range map[string]maker{"semaphore": plainSem, "permits": leasedSem} {
		s := build(c, rdb, "events-"+kind)
		s.setUp(t, 2)
		p, err := s.take(ctx, 2)
		mustTake(t, p, err)
		if _, err := s.try(ctx, 2); !errors.Is(err, ErrNoPermits) {
			t.Errorf("%s: %v, want ErrNoPermits", kind, err)
		}
		if kind == "permits" {
			if got := within(t, testTimeout, "a renewal", renewed); got != p {
				t.Errorf("renewed %v, want the permits", got.IDs())
			}
			rdb.Del(ctx, "events-permits", "{events-permits}:permits")
			if got := within(t, testTimeout, "the loss", lost); got != p || p.Context().Err() == nil {
				t.Errorf("lost %v, want the permits, and their context ended", got.IDs())
			}
		}
		_ = p.Release(ctx)
	}
	arm(t, c.Latch("events-latch"), 1)
	count(t, c.Latch("events-latch"), CountDownOptions{})
	if err := c.Latch("events-latch").Wait(ctx); err != nil {
		t.Error(err)
	}
	closeClient(t, c)
	mu.Lock()
	defer mu.Unlock()
	want := map[string][]EventKind{
		"semaphore": {Acquired, NotAcquired, Released},
		"permits":   {Acquired, NotAcquired, Lost, Released},
		"latch":     {Armed, Counted, Passed},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("events: %s", diff)
	}
	for _, line := range []string{
		"msg=\"semaphore acquired\" semaphore=events-semaphore", "level=WARN msg=\"permits lost\"",
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log has no %s:\n%s", line, log.String())
		}
	}
}

// An acquire that waits at a wrong address says so, once in a while.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	events := make(chan Event, 100)
	c := newTestClient(t, dialRedis(t, freeAddr(t)), Options{Observe: func(e Event) { events <- e }})
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("nowhere", WithTries(4)).Acquire(ctx)
		failed <- err
	}()
	e := within(t, testTimeout, "the event", events)
	if e.Kind != Unreachable || e.Name != "nowhere" || e.Err == nil {
		t.Errorf("event %+v, want that nowhere is unreachable", e)
	}
	within(t, testTimeout, "the end of the tries", failed)
	cancel()
	if e := within(t, testTimeout, "the last event", events); e.Kind != NotAcquired {
		t.Errorf("event %+v, want one of each kind", e)
	}
}
