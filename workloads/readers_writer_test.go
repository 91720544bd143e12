package workloads

import (
	"testing"
	"testing/synctest"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// TestReadersWriterModes: most acquires are for reading, some for writing; the history has the modes of the requests;
// and only writers write the guarded counter.
func TestReadersWriterModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := newTape(), newClientFake(newLockFake())
		readersWriterClient(t.Context(), stopAfter(c, 600), env(c, tape, 0, 3, 1))
		modes := map[string]int{}
		for _, r := range c.requests {
			if r.Op == history.Acquire {
				modes[r.Mode]++
			}
		}
		if modes["read"] < 2*modes["write"] || modes["write"] < 20 || len(modes) != 2 {
			t.Errorf("modes %v, want three reads for each write", modes)
		}
		h := built(t, tape)
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
			tape, c := newTape(), newClientFake(newLockFake())
			e := env(c, tape, number, 3, 1)
			e.Params.Writers = 2
			readersWriterClient(t.Context(), stopAfter(c, 40), e)
			for _, r := range c.requests {
				if r.Op == history.Acquire && r.Mode != want {
					t.Fatalf("client %d acquires in mode %s, want %s", number, r.Mode, want)
				}
			}
		}
	})
	for _, c := range []struct {
		p  Params
		ok bool
	}{
		{Params{Kind: "readers-writer", Writers: 5}, true},
		{Params{Kind: "readers-writer", Writers: 6}, false},
		{Params{Kind: "readers-writer", Writers: -1}, false},
		{Params{Kind: "mutex", Writers: 1}, false},
	} {
		if err := c.p.Defaults().Validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v, want valid: %v", c.p, err, c.ok)
		}
	}
}

// TestReadersWriterAfterEachOutcome: the client continues, as another process after an unknown outcome.
func TestReadersWriterAfterEachOutcome(t *testing.T) {
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
			readersWriterClient(t.Context(), stopAfter(c, 3), e)
			if got := e.Session.Process(); got != process || len(c.requests) != 4 {
				t.Errorf("after %s: process %d after %d requests, want %d after 4", kind, got, len(c.requests), process)
			}
		}
	})
}
