package lock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A holder is paused past the end of its lease and resumes after another holder has used
// the resource: the resource refuses it, in this process and in Redis.
func TestFence(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	ctx := context.Background()
	asleep := acquire(t, c.FencedMutex("res"), WithLease(50*time.Millisecond))
	<-asleep.Context().Done()
	awake := acquire(t, c.FencedMutex("res"))
	var local Fence
	remote := NewRedisFence(rdb, "{data}:guard")
	write := func(h *Hold, value string) error {
		_, err := remote.Run(ctx, h.token, `return redis.call('SET', KEYS[1], ARGV[1])`, []string{"data"}, value)
		return errors.Join(err, local.Do(h.token, func() error { return nil }))
	}
	if err := errors.Join(write(asleep, "before"), write(awake, "new"), write(awake, "newer")); err != nil {
		t.Fatal(err)
	}
	if err := write(asleep, "old"); !errors.Is(err, ErrStale) {
		t.Errorf("write with an old token: %v, want ErrStale", err)
	}
	if got := rdb.Get(ctx, "data").Val(); got != "newer" {
		t.Errorf("data %q, want the newer", got)
	}
	if err := local.Do(asleep.token, func() error { t.Error("was let in"); return nil }); !errors.Is(err, ErrStale) {
		t.Errorf("local: %v, want ErrStale", err)
	}
}

// Tokens are compared as numbers, even where a Lua number cannot distinguish them.
func TestFenceCompares(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	f := NewRedisFence(rdb, "guard")
	for _, tt := range []struct {
		token int64
		stale bool
	}{
		{9, false}, {10, false}, {9, true}, {10, false},
		{1<<53 + 1, false}, {1 << 53, true}, {1<<63 - 1, false}, {1<<63 - 2, true},
	} {
		_, err := f.Run(context.Background(), tt.token, "", nil)
		if errors.Is(err, ErrStale) != tt.stale || err != nil && !tt.stale {
			t.Errorf("token %d: %v, want stale %v", tt.token, err, tt.stale)
		}
	}
	if _, err := f.Run(context.Background(), 0, "", nil); err == nil {
		t.Error("no token was let in")
	}
	if err := new(Fence).Do(0, func() error { return nil }); err == nil {
		t.Error("no token was let in")
	}
}

// The script of a resource runs once, though its reply is lost and the client of the resource retries.
func TestFenceRunsOnce(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	direct := s.Dial(t)
	ctx := context.Background()
	f := NewRedisFence(dialRedis(t, p.Addr), "guard")
	const script = `return redis.call('INCR', KEYS[1])`
	if _, err := f.Run(ctx, 1, script, []string{"data"}); err != nil {
		t.Fatal(err)
	}
	p.lose(1)
	if _, err := f.Run(ctx, 2, script, []string{"data"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("without a reply: %v, want ErrUnknown", err)
	}
	if n, _ := direct.Get(ctx, "data").Int(); n != 2 {
		t.Errorf("the script ran %d times, want once for each call", n-1)
	}
}
