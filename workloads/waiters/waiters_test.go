package waiters

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/workloadtest"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// TestWaitersComeInRounds: all requests are made in the first half of a round; some acquires give up, some holds are
// not released, some are nested, some are released by force; some clients come long after the others.
func TestWaitersComeInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		c.Script = func(n int, r client.Request) (*client.Reply, error) {
			if r.Op == history.Try || r.Op == history.Acquire && n%3 == 0 {
				return &client.Reply{Type: "fail", Code: history.CodeHeld}, nil
			}
			return &client.Reply{Type: "ok", Count: 1}, nil
		}
		e := workloadtest.Env(c, tape, 0, 2, 1)
		const think = 8 * time.Second
		e.Params.Kind, e.Params.Think = workload.Waiters, think
		e.Can = promise.Try | promise.Reentrant | promise.ReportsLoss | promise.ForceRelease
		run(t.Context(), workloadtest.StopAfter(c, 600), e)
		h := tape.History(t)
		round := func(at time.Duration) time.Duration { return (at + think - e.Params.Hold) % think }
		acquired, released, forced, late, nested := 0, 0, 0, 0, map[int32]int{}
		for _, s := range h.Spans {
			if at := round(s.Call); at < think-time.Second && at > think/2 {
				t.Fatalf("a request at %v, in the quiet part of a round", s.Call)
			} else if at > workload.BeyondQueue && at < think/2 && s.Op == history.OpAcquire {
				late++
			}
			switch {
			case s.Op == history.OpForceRelease:
				forced++
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
		if acquired == 0 || released == 0 || released >= acquired || twice == 0 || forced == 0 || late == 0 {
			t.Errorf("%d acquires, %d of them late, %d releases, %d by force, %d nested",
				acquired, late, released, forced, twice)
		}
	})
}

// TestWaitersDrawTheSameRounds: each round has the same leader for all clients, or none; its leader comes late only if
// the lock can be shared.
func TestWaitersDrawTheSameRounds(t *testing.T) {
	const clients, rounds = 5, 200
	led, late := 0, 0
	for n := range rounds {
		leaders, taking, keys := 0, 0, map[string]bool{}
		for i := range clients {
			e := workloadtest.Env(nil, nil, i, clients, 7)
			e.Params.Think = time.Hour
			e.Left = func() time.Duration { return time.Duration(n)*time.Hour + time.Minute }
			if n%2 == 0 {
				e.Can = promise.ReadWrite
			}
			c := &contender{Actor: workload.Actor{Env: e, Keys: []string{"a", "b", "c"}}}
			r, is := c.joinRound()
			if !is {
				continue
			}
			taking++
			if keys[c.Key] = true; r.leads() {
				leaders++
			}
			if r.kind == lateLeads && n%2 == 1 {
				t.Fatal("the leader comes late, but the others exclude each other")
			} else if r.kind == lateLeads && r.leads() {
				late++
			}
		}
		if taking != 0 && (taking != clients || leaders != 1 || len(keys) != 1) {
			t.Fatalf("round %d: %d of %d clients take part with %d leaders at %d keys", n, taking, clients, leaders, len(keys))
		}
		led += leaders
	}
	if led == 0 || led == rounds || late == 0 || late == led {
		t.Errorf("of %d rounds %d have a leader, %d of them a late one", rounds, led, late)
	}
}

// TestTheFirstWaitersDesert: they wait until the leader has released, and the others for as long as they may.
func TestTheFirstWaitersDesert(t *testing.T) {
	const clients = 6
	var released, begun time.Duration
	for place := range clients {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			c := workloadtest.NewClient(workloadtest.NewLock())
			var until time.Duration
			c.Script = func(_ int, r client.Request) (*client.Reply, error) {
				at := time.Since(start)
				if r.Op == history.Acquire {
					until, begun = at+r.Wait, max(begun, at)
				} else if place == 0 && r.Op == history.Release {
					released = at
				}
				return nil, nil
			}
			e := workloadtest.Env(c, workloadtest.NewTape(), place, clients, 1)
			(&contender{workload.Actor{Env: e, Context: t.Context(), Key: "a"}}).desert(ledRound{kind: deserted, place: place})
			leaves := until >= released && until < released+deserting
			if wants := place > 0 && place <= clients/2; leaves != wants {
				t.Errorf("the client at place %d waits until %v; the lock is released at %v", place, until, released)
			}
		})
	}
	if begun == 0 || begun >= released {
		t.Errorf("the last request was made at %v; the lock is released at %v", begun, released)
	}
}

// TestWaitersOpenLatches: some clients wait for a latch while others count it down.
func TestWaitersOpenLatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		c.Script = (&workloadtest.Latch{}).Reply
		e := workloadtest.Env(c, tape, 0, 1, 1)
		e.Params.Kind, e.Can = workload.Waiters, promise.Latch
		run(t.Context(), workloadtest.StopAfter(c, 100), e)
		seen := map[history.Op]int{}
		for _, s := range tape.History(t).Spans {
			seen[s.Op]++
		}
		if seen[history.OpArm] == 0 || seen[history.OpAwait] == 0 || seen[history.OpCountDown] == 0 {
			t.Errorf("operations: %v", seen)
		}
	})
}
