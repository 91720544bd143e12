package locks

import (
	"context"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/promise"
)

// TestOwnersAreInspected: a lock shows the holds of an owner, beside another owner if it can be shared, and not after
// the release.
func TestOwnersAreInspected(t *testing.T) {
	server := locktest.StartServer(t)
	for _, row := range kindSpecs() {
		if !row.Can.Has(promise.InspectOwner) {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			server.Dial(t).FlushAll(t.Context())
			n, _ := onServer(t, row, server.Addr, 1, nil)
			do := func(op, owner string) client.Reply {
				a := client.Acquire{Key: "k", Owner: owner, Lease: time.Minute, Permits: 2, Limit: 5}
				if row.Can.Has(promise.ReadWrite) {
					a.Permits, a.Limit, a.Mode = 0, 0, "read"
				}
				return n.handle(t.Context(), client.Request{ID: 2, Op: op, Acquire: a})
			}
			for i, step := range []struct {
				op, owner, want string
				count           int
			}{
				{history.InspectOwner, "a", "not-held", 0}, {history.Try, "a", "", 0}, {history.Try, "b", "", 0},
				{history.InspectOwner, "a", "", 2}, {history.InspectOwner, "b", "", 2}, {history.Release, "a", "", 0},
				{history.InspectOwner, "a", "not-held", 0}, {history.InspectOwner, "b", "", 2},
			} {
				if step.count == 2 && row.Can.Has(promise.ReadWrite) {
					step.count = 1
				}
				r := do(step.op, step.owner)
				if r.Code != step.want || step.op == history.InspectOwner && r.Count != step.count {
					t.Errorf("step %d, %s of %s: %+v, want code %q and count %d", i, step.op, step.owner, r, step.want, step.count)
				}
			}
		})
	}
}

// TestWaitersAreCounted: a waiter is counted while it waits.
func TestWaitersAreCounted(t *testing.T) {
	row, err := Lookup("fair")
	if err != nil {
		t.Fatal(err)
	}
	server := locktest.StartServer(t)
	holder, _ := onServer(t, row, server.Addr, 1, nil)
	waiter, _ := onServer(t, row, server.Addr, 2, nil)
	a := client.Acquire{Key: "k", Owner: "a", Lease: time.Minute}
	if r := holder.handle(t.Context(), client.Request{ID: 2, Op: history.Try, Acquire: a}); r.Type != "ok" {
		t.Fatalf("try: %+v", r)
	}
	waits, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := waiter.locker.Acquire(waits, client.Acquire{Key: "k", Owner: "b", Lease: time.Minute, Wait: time.Minute})
		ended <- err
	}()
	count := func() client.Reply {
		return holder.handle(t.Context(), client.Request{ID: 3, Op: history.CountWaiters, Acquire: a})
	}
	locktest.Eventually(t, 20*time.Second, "a waiter is counted", func() bool { return count().Count == 1 })
	cancel()
	if err := <-ended; err == nil {
		t.Error("the canceled acquire was granted the lock")
	}
	if r := count(); r.Type != "ok" || r.Count != 0 {
		t.Errorf("after it gave up: %+v", r)
	}
}

// TestUnnamedCounts: each count-down without a participant counts.
func TestUnnamedCounts(t *testing.T) {
	row, err := Lookup("latch")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := onServer(t, row, locktest.StartServer(t).Addr, 1, nil)
	if r := n.handle(t.Context(), client.Request{ID: 2, Op: history.Arm, Count: 3, Acquire: client.Acquire{Key: "k"}}); r.Code != "" {
		t.Fatalf("arm: %+v", r)
	}
	for left := 2; left >= 0; left-- {
		r := n.handle(t.Context(), client.Request{ID: 3, Op: history.CountDown, Acquire: client.Acquire{Key: "k"}})
		if r.Code != "" || r.Count != left {
			t.Errorf("a count-down, of which %d should be left: %+v", left, r)
		}
	}
}

// TestLatchIsDeleted: a latch shows its state until it is deleted.
func TestLatchIsDeleted(t *testing.T) {
	row, err := Lookup("latch")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := onServer(t, row, locktest.StartServer(t).Addr, 1, nil)
	for i, step := range []struct {
		op    string
		code  string
		count int
	}{
		{history.Inspect, "absent", 0}, {history.Arm, "", 2}, {history.Inspect, "", 2}, {history.CountDown, "", 1},
		{history.Inspect, "", 1}, {history.Delete, "", 0}, {history.Inspect, "absent", 0}, {history.Delete, "", 0},
		{history.CountDown, "absent", 0}, {history.Await, "absent", 0},
	} {
		r := n.handle(t.Context(), client.Request{
			ID: 2, Op: step.op, Count: 2, Acquire: client.Acquire{Key: "k", Owner: "p", Wait: time.Second},
		})
		if r.Code != step.code || r.Count != step.count || (r.Token == 0) != (step.op == history.Delete || step.code != "") {
			t.Errorf("step %d, %s: %+v, want code %q and count %d", i, step.op, r, step.code, step.count)
		}
	}
}
