package workloads

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// One permit mostly, several sometimes, never more than there are; the history
// and the client are told the same, how many there are among it, and all are
// given back. Nobody writes at the guarded resource.
func TestSemaphoreAsksForPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := newTape(), newClientFake(newLockFake())
		e := env(c, tape, 0, 3, 1)
		e.Params.Permits = 4
		semaphoreClient(t.Context(), stopAfter(c, 600), e)
		asked, out := map[int]int{}, 0
		for _, r := range c.asked {
			switch r.Op {
			case history.Acquire:
				if r.Limit != 4 || out != 0 {
					t.Fatalf("asked %+v with %d permits in hand, want the limit 4 and none", r, out)
				}
				asked[r.Permits]++
				out = r.Permits
			case history.Release:
				out -= r.Permits
			}
		}
		if asked[1] < 2*(asked[2]+asked[3]+asked[4]) || asked[2] == 0 || asked[3] == 0 || asked[4] == 0 || len(asked) != 4 {
			t.Errorf("asked for %v: want one mostly, and two, three and four", asked)
		}
		h := built(t, tape)
		several := 0
		for _, s := range h.Spans {
			if s.Op == history.OpAcquire && s.Permits > 1 {
				several++
			}
		}
		if several != asked[2]+asked[3]+asked[4] || h.Limit(0) != 4 || len(h.Touches) != 0 {
			t.Errorf("the history has %d acquires of several permits, the limit %d and %d writes, want %d, 4 and 0",
				several, h.Limit(0), len(h.Touches), asked[2]+asked[3]+asked[4])
		}
	})
}

// Permits are for semaphores only, and a semaphore always has some.
func TestPermitsOfWorkloads(t *testing.T) {
	for _, c := range []struct {
		p    Params
		want int // -1: refused
	}{
		{Params{}, 0},
		{Params{Kind: "semaphore"}, 3},
		{Params{Kind: "semaphore", Permits: 10}, 10},
		{Params{Kind: "semaphore", Permits: -1}, -1},
		{Params{Kind: "semaphore", Permits: MaxPermits + 1}, -1},
		{Params{Kind: "semaphore", Fenced: true}, -1},
		{Params{Kind: "mutex", Permits: 1}, -1},
		{Params{Kind: "readers-writer", Permits: 2}, -1},
	} {
		p := c.p.Defaults()
		if err := p.Validate(); (err != nil) != (c.want < 0) || err == nil && p.Permits != c.want {
			t.Errorf("%+v: %v, want %d permits", c.p, err, c.want)
		}
	}
}

// After a refusal or an unknown outcome the client goes on.
func TestSemaphoreAfterEachOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, process := range map[string]history.Process{"fail": 0, "info": 3} {
			tape, c := newTape(), newClientFake(newLockFake())
			c.script = func(n int, _ client.Request) (*client.Reply, error) {
				if n == 1 {
					return &client.Reply{Type: kind, Code: "x"}, nil
				}
				return nil, nil
			}
			e := env(c, tape, 0, 3, 1)
			e.Params.Permits, e.Params.Hold = 2, time.Millisecond
			semaphoreClient(t.Context(), stopAfter(c, 3), e)
			if got := e.Session.Process(); got != process || len(c.asked) != 4 {
				t.Errorf("after %s: process %d after %d requests, want %d after 4", kind, got, len(c.asked), process)
			}
		}
	})
}
