package lock

import (
	"testing"
	"time"
)

// The hold count of a quorum is the number of the client's unreleased grants; other counts at masters do not matter.
func TestKnownHoldsEndWithTheHold(t *testing.T) {
	t.Parallel()
	m := startMasters(t, 3, Options{})
	c := m.client
	outer := acquire(t, c.Mutex("k"), WithLease(time.Minute))
	for _, rdb := range m.direct { // all count a claim whose withdrawal they have missed
		if err := rdb.HIncrBy(t.Context(), "k", "count", 1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	inner := acquire(t, c.Mutex("k"), WithOwner(outer.Owner()), WithReentry(), WithLease(time.Minute))
	if n := c.quorum.known.Count(outer.claim.owned()); n != 2 || outer.Count() != 1 || inner.Count() != 2 {
		t.Errorf("%d holds known, counts %d and %d, want 2, 1 and 2", n, outer.Count(), inner.Count())
	}
	release(t, inner)
	if n := c.quorum.known.Count(outer.claim.owned()); n != 1 || inner.Count() != 1 {
		t.Errorf("%d holds known and count %d after a release, want 1", n, inner.Count())
	}
	outer.lose()
	if err := outer.Release(t.Context()); err == nil {
		t.Error("a lost hold was released without an error")
	}
	if n := c.quorum.known.Count(outer.claim.owned()); n != 0 {
		t.Errorf("%d holds known after all have ended, want none", n)
	}
}

// Releases run apart from everything else, and Close waits for them before it ends the
// rest.
func TestCloseLetsReleasesArrive(t *testing.T) {
	t.Parallel()
	m := startMasters(t, 3, Options{})
	q := m.client.quorum
	if !q.releases.Enter() {
		t.Fatal("it is closed already")
	}
	closed := make(chan error, 1)
	go func() { closed <- m.client.Close(t.Context()) }()
	eventually(t, testTimeout, "Close lets no more releases begin", func() bool {
		if q.releases.Enter() {
			q.releases.Done()
			return false
		}
		return true
	})
	if err := q.bg.Context.Err(); err != nil {
		t.Errorf("requests are ended while a release is on its way: %v", err)
	}
	if v := <-q.giveBack(t.Context(), claim{key: "k", lease: 1000}, time.Second, nil, func() {}); v.err == nil {
		t.Error("a release was started that no caller waits for")
	}
	q.releases.Done()
	if err := <-closed; err != nil || q.bg.Context.Err() == nil {
		t.Errorf("closed: %v, and requests continue: %v", err, q.bg.Context.Err() == nil)
	}
}
