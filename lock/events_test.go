package lock

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The life of two holds as metrics and a log see it.
func TestEvents(t *testing.T) {
	rdb := startRedis(t).dial(t)
	var mu sync.Mutex
	var seen []Happening
	lost := make(chan struct{})
	var log bytes.Buffer
	c := newTestClient(t, rdb, Options{
		Lease: 10 * time.Second,
		Observe: func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, e.What)
			if e.What == Lost {
				close(lost)
			}
			if e.Lock != "told" || e.Owner == "" {
				t.Errorf("event %+v: want the lock and its owner", e)
			}
			if e.What == Acquired && (e.Token == 0 || e.Took <= 0 || e.Err != nil) {
				t.Errorf("event %+v: want a token, a duration and no error", e)
			}
		},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	h := acquire(t, c.Mutex("told"), AcquireOptions{})
	if _, err := c.Mutex("told").TryAcquire(context.Background(), AcquireOptions{}); err == nil {
		t.Error("granted twice")
	}
	release(t, h)
	h = acquire(t, c.Mutex("told"), AcquireOptions{Lease: 50 * time.Millisecond})
	<-lost
	if err := h.Release(context.Background()); err == nil {
		t.Error("a lost hold was released")
	}
	closeClient(t, c)
	mu.Lock()
	defer mu.Unlock()
	want := []Happening{Acquired, NotAcquired, Released, Acquired, Lost, Released}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("events: %s", diff)
	}
	for _, line := range []string{"level=DEBUG msg=\"lock acquired\"", "level=WARN msg=\"lock lost\" lock=told"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log has no %s:\n%s", line, log.String())
		}
	}
}
