package workloads

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// TestWaitersComeInRounds: all requests are made in the first part of a round; some acquires give up, some holds are
// not released, some are nested.
func TestWaitersComeInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := newTape(), newClientFake(newLockFake())
		c.script = func(n int, r client.Request) (*client.Reply, error) {
			if r.Op == history.Try || r.Op == history.Acquire && n%3 == 0 {
				return &client.Reply{Type: "fail", Code: history.CodeHeld}, nil
			}
			return &client.Reply{Type: "ok", Count: 1}, nil
		}
		e := env(c, tape, 0, 4, 1)
		e.Params.Kind, e.Params.Think = waitersSpec.Name, 4*time.Second
		e.Can = client.Capabilities{client.CanTry, client.Reentrant, client.ReportsLoss}
		waitersClient(t.Context(), stopAfter(c, 300), e)
		h := built(t, tape)
		round := func(at time.Duration) time.Duration { return (at + 4*time.Second - e.Params.Hold) % (4 * time.Second) }
		acquired, released, nested := 0, 0, map[int32]int{}
		for _, s := range h.Spans {
			if at := round(s.Call); at < 3*time.Second && at > time.Second {
				t.Fatalf("a request at %v, in the quiet part of a round", s.Call)
			}
			switch {
			case s.Outcome != history.OK:
			case s.Op == history.OpAcquire:
				acquired++
				nested[s.Owner]++
			case s.Op == history.OpRelease:
				released++
			}
		}
		twice := 0
		for _, n := range nested {
			twice += n / 2
		}
		if acquired == 0 || released == 0 || released >= acquired || twice == 0 {
			t.Errorf("%d acquires, %d releases, %d nested", acquired, released, twice)
		}
	})
}

// TestWaitersOpenLatches: some clients wait for a latch while others count it down.
func TestWaitersOpenLatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := newTape(), newClientFake(newLockFake())
		c.script = (&latchFake{}).reply
		e := env(c, tape, 0, 1, 1)
		e.Params.Kind, e.Can = waitersSpec.Name, client.Capabilities{client.IsLatch}
		waitersClient(t.Context(), stopAfter(c, 100), e)
		seen := map[history.Op]int{}
		for _, s := range built(t, tape).Spans {
			seen[s.Op]++
		}
		if seen[history.OpArm] == 0 || seen[history.OpAwait] == 0 || seen[history.OpCountDown] == 0 {
			t.Errorf("operations: %v", seen)
		}
	})
}
