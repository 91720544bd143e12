package lock

import (
	"context"
	"strings"
	"testing"
)

// When permits and locks are released, no goroutine runs for them anymore, and no key
// stays for good except the counters.
func TestCountedAndMultiLeaveNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	running := c.bg.Running
	releaseAll(t, acquireAll(t, multi(t, c.Mutex("a"), c.Mutex("b")))) // starts goroutines that stay
	before := running()
	for kind, build := range builders() {
		s := build(c, rdb, kind)
		s.setUp(t, 50)
		for range 50 {
			p, err := s.take(ctx, 1)
			mustTake(t, p, err)
			defer func() {
				if p.Context().Err() == nil {
					t.Error("a context outlives its permits")
				}
			}()
			mustGive(t, p)
		}
	}
	for range 50 {
		releaseAll(t, acquireAll(t, multi(t, c.Mutex("a"), c.Mutex("b"))))
	}
	arm(t, c.Latch("latch"), 1)
	count(t, c.Latch("latch"), CountDownOptions{})
	eventually(t, testTimeout, "no goroutine runs for what has ended", func() bool { return running() <= before })
	kept := map[string]bool{"plain": true, "leased": true, "latch": true}
	for _, key := range rdb.Keys(ctx, "*").Val() {
		if !kept[key] && !strings.HasSuffix(key, ":token") && rdb.PTTL(ctx, key).Val() == -1 { // -2: it has expired
			t.Errorf("key %q has no expiry", key)
		}
	}
}
