package workloads

import (
	"testing"
	"testing/synctest"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// TestMeetings: a client that passes the latch, or finds none, arms it for all clients; it counts down whichever
// generation is current, waits for that one, and sometimes deletes the latch.
func TestMeetings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fake, gone := newClientFake(newLockFake()), latchFake{}, true
		c.script = func(n int, r client.Request) (*client.Reply, error) {
			switch {
			case r.Op == history.Delete:
				fake.count, gone = 0, true
				return &client.Reply{Type: "ok"}, nil
			case r.Op == history.CountDown && gone:
				return &client.Reply{Type: "fail", Code: history.CodeAbsent}, nil
			case r.Op == history.Arm:
				gone = false
			case r.Op == history.CountDown:
				fake.count = 1 // the others have counted
			}
			return fake.reply(n, r)
		}
		e := env(c, newTape(), 0, 3, 3)
		e.Params.Kind, e.Params.Sequences = latchSpec.Name, meeting
		e.Can = client.Capabilities{client.IsLatch, client.CanDelete}
		latchClient(t.Context(), stopAfter(c, 200), e)
		seen := map[string]int{}
		for n, r := range c.requests {
			seen[r.Op]++
			switch {
			case r.Op == history.Arm && r.Count != 3:
				t.Errorf("request %d arms the latch for %d of 3 clients", n, r.Count)
			case r.Op == history.CountDown && r.Token != 0:
				t.Errorf("request %d counts generation %d down", n, r.Token)
			case r.Op == history.Await && r.Token == 0:
				t.Errorf("request %d waits for any generation", n)
			}
		}
		// Each deletion is followed by a count-down that finds no latch, as at the beginning.
		if deleted := seen[history.Delete]; deleted == 0 || seen[history.Await] < 20 ||
			seen[history.Arm] < seen[history.Await] || seen[history.CountDown] < seen[history.Await]+1 {
			t.Errorf("operations: %v", seen)
		}
	})
}

// TestSequencesOfLatches: a latch has one sequence that can be named.
func TestSequencesOfLatches(t *testing.T) {
	for sequences, valid := range map[string]bool{"": true, meeting: true, "plain": false, "meeting, plain": false} {
		if err := (Params{Kind: latchSpec.Name, Sequences: sequences}).Defaults().Validate(); (err == nil) != valid {
			t.Errorf("%q: %v", sequences, err)
		}
	}
}
