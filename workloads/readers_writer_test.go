package workloads

import (
	"testing"
	"testing/synctest"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/workloadtest"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// TestReadersWriterModes: most acquires are for reading, some for writing; the history has the modes of the requests;
// and only writers write the guarded counter.
func TestReadersWriterModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		readersWriterClient(t.Context(), workloadtest.StopAfter(c, 600), workloadtest.Env(c, tape, 0, 3, 1))
		modes := map[string]int{}
		for _, r := range c.Requests {
			if r.Op == history.Acquire {
				modes[r.Mode]++
			}
		}
		if modes["read"] < 2*modes["write"] || modes["write"] < 20 || len(modes) != 2 {
			t.Errorf("modes %v, want three reads for each write", modes)
		}
		h := tape.History(t)
		writes := 0
		for _, s := range h.Spans {
			if s.Op == history.OpAcquire && s.Write {
				writes++
			}
		}
		if writes != modes["write"] || len(h.Touches) != writes {
			t.Errorf("%d writers in the history, %d writes to the counter, want %d", writes, len(h.Touches), modes["write"])
		}
	})
}

// TestReadersWriterWriters: the first Params.Writers clients only write, and the others only read.
func TestReadersWriterWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for number, want := range map[int]string{0: "write", 1: "write", 2: "read"} {
			tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
			e := workloadtest.Env(c, tape, number, 3, 1)
			e.Params.Writers = 2
			readersWriterClient(t.Context(), workloadtest.StopAfter(c, 40), e)
			for _, r := range c.Requests {
				if r.Op == history.Acquire && r.Mode != want {
					t.Fatalf("client %d acquires in mode %s, want %s", number, r.Mode, want)
				}
			}
		}
	})
	for _, c := range []struct {
		p  workload.Params
		ok bool
	}{
		{workload.Params{Kind: "readers-writer", Writers: 5}, true},
		{workload.Params{Kind: "readers-writer", Writers: 6}, false},
		{workload.Params{Kind: "readers-writer", Writers: -1}, false},
		{workload.Params{Kind: "mutex", Writers: 1}, false},
	} {
		if err := Validate(c.p.Defaults()); (err == nil) != c.ok {
			t.Errorf("%+v: %v, want valid: %v", c.p, err, c.ok)
		}
	}
}

// TestReadersWriterAfterEachOutcome: the client continues, as another process after an unknown outcome.
func TestReadersWriterAfterEachOutcome(t *testing.T) {
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
			readersWriterClient(t.Context(), workloadtest.StopAfter(c, 3), e)
			if got := e.Session.Process(); got != process || len(c.Requests) != 4 {
				t.Errorf("after %s: process %d after %d requests, want %d after 4", kind, got, len(c.Requests), process)
			}
		}
	})
}
