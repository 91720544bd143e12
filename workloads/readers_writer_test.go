package workloads

import (
	"testing"
	"testing/synctest"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// Most acquires are for reading, some for writing; the history and the client
// are told the same; and only writers write at the guarded resource.
func TestReadersWriterAsksForModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := newTape(), newClientFake(newLockFake())
		readersWriterClient(t.Context(), stopAfter(c, 600), env(c, tape, 0, 3, 1))
		asked := map[string]int{}
		for _, r := range c.asked {
			if r.Op == history.Acquire {
				asked[r.Mode]++
			}
		}
		if asked["read"] < 2*asked["write"] || asked["write"] < 20 || len(asked) != 2 {
			t.Errorf("asked for %v: want three reads to a write, and nothing else", asked)
		}
		h := built(t, tape)
		writes := 0
		for _, s := range h.Spans {
			if s.Op == history.OpAcquire && s.Write {
				writes++
			}
		}
		if writes != asked["write"] || len(h.Touches) != writes {
			t.Errorf("%d writers in the history, %d writes at the resource, want %d", writes, len(h.Touches), asked["write"])
		}
	})
}

// After a refusal or an unknown outcome the client goes on, under another process after the latter.
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
			if got := e.Session.Process(); got != process || len(c.asked) != 4 {
				t.Errorf("after %s: process %d after %d requests, want %d after 4", kind, got, len(c.asked), process)
			}
		}
	})
}
