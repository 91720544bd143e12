package workloads

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/workloadtest"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// TestSemaphorePermits: most acquires are for one permit, some for several, none for more than there are; the history
// has the permits and the limit of the requests; all permits are released, and the guarded counter is not written.
func TestSemaphorePermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		e := workloadtest.Env(c, tape, 0, 3, 1)
		e.Params.Permits = 4
		semaphoreClient(t.Context(), workloadtest.StopAfter(c, 600), e)
		permits, held := map[int]int{}, 0
		for _, r := range c.Requests {
			switch r.Op {
			case history.Acquire:
				if r.Limit != 4 || held != 0 {
					t.Fatalf("%+v while %d permits are held, want limit 4 and none held", r, held)
				}
				permits[r.Permits]++
				held = r.Permits
			case history.Release:
				held -= r.Permits
			}
		}
		if several := permits[2] + permits[3] + permits[4]; permits[1] < 2*several || len(permits) != 4 {
			t.Errorf("acquires by permits: %v, want mostly one, and two, three and four", permits)
		}
		h := tape.History(t)
		several := 0
		for _, s := range h.Spans {
			if s.Op == history.OpAcquire && s.Permits > 1 {
				several++
			}
		}
		if several != permits[2]+permits[3]+permits[4] || h.Limit(0) != 4 || len(h.Touches) != 0 {
			t.Errorf("the history has %d acquires of several permits, the limit %d and %d writes, want %d, 4 and 0",
				several, h.Limit(0), len(h.Touches), permits[2]+permits[3]+permits[4])
		}
	})
}

// TestPermitsOfWorkloads: only a semaphore has permits, and always some.
func TestPermitsOfWorkloads(t *testing.T) {
	for _, c := range []struct {
		p    workload.Params
		want int // -1: refused
	}{
		{workload.Params{}, 0},
		{workload.Params{Kind: "semaphore"}, 3},
		{workload.Params{Kind: "semaphore", Permits: 10}, 10},
		{workload.Params{Kind: "semaphore", Permits: -1}, -1},
		{workload.Params{Kind: "semaphore", Permits: workload.MaxPermits + 1}, -1},
		{workload.Params{Kind: "semaphore", Fenced: true}, -1},
		{workload.Params{Kind: "mutex", Permits: 1}, -1},
		{workload.Params{Kind: "readers-writer", Permits: 2}, -1},
	} {
		p := c.p.Defaults()
		if err := Validate(p); (err != nil) != (c.want < 0) || err == nil && p.Permits != c.want {
			t.Errorf("%+v: %v, want %d permits", c.p, err, c.want)
		}
	}
}

// TestSemaphoreAfterEachOutcome: the client continues, as another process after an unknown outcome.
func TestSemaphoreAfterEachOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, process := range map[string]history.Process{"fail": 0, "info": 3} {
			tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
			c.Script = func(n int, _ client.Request) (*client.Reply, error) {
				if n == 1 {
					return &client.Reply{Type: kind, Code: "x"}, nil
				}
				return nil, nil
			}
			e := workloadtest.Env(c, tape, 0, 3, 1)
			e.Params.Permits, e.Params.Hold = 2, time.Millisecond
			semaphoreClient(t.Context(), workloadtest.StopAfter(c, 3), e)
			if got := e.Session.Process(); got != process || len(c.Requests) != 4 {
				t.Errorf("after %s: process %d after %d requests, want %d after 4", kind, got, len(c.Requests), process)
			}
		}
	})
}
