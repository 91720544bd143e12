package workloads

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/workloadtest"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// TestMeetings: a client that passes the latch, or finds none, arms it for all clients; it counts down whichever
// generation is current, waits for that one, and sometimes deletes the latch.
func TestMeetings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fake, gone := workloadtest.NewClient(workloadtest.NewLock()), workloadtest.Latch{}, true
		c.Script = func(n int, r client.Request) (*client.Reply, error) {
			switch {
			case r.Op == history.Delete:
				fake.Count, gone = 0, true
				return &client.Reply{Type: "ok"}, nil
			case r.Op == history.CountDown && gone:
				return &client.Reply{Type: "fail", Code: history.CodeAbsent}, nil
			case r.Op == history.Arm:
				gone = false
			case r.Op == history.CountDown:
				fake.Count = 1 // the others have counted
			}
			return fake.Reply(n, r)
		}
		e := workloadtest.Env(c, workloadtest.NewTape(), 0, 3, 3)
		e.Params.Kind, e.Params.Sequences = workload.Latch, meeting
		e.Can = promise.Latch
		latchClient(t.Context(), workloadtest.StopAfter(c, 200), e)
		seen := map[string]int{}
		for n, r := range c.Requests {
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
		if err := Validate(workload.Params{Kind: workload.Latch, Sequences: sequences}.Defaults()); (err == nil) != valid {
			t.Errorf("%q: %v", sequences, err)
		}
	}
}

// TestLatchWorkload: some awaits time out and some succeed; some arms are refused, because the latch still counts, and
// some succeed.
func TestLatchWorkload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		c.Script = (&workloadtest.Latch{}).Reply
		e := workloadtest.Env(c, tape, 0, 1, 3)
		e.Params.Kind = workload.Latch
		latchClient(t.Context(), workloadtest.StopAfter(c, 300), e)
		seen := map[string]int{}
		for _, s := range tape.History(t).Spans {
			seen[fmt.Sprint(s.Op, s.Outcome)]++
		}
		for _, op := range []history.Op{history.OpArm, history.OpAwait} {
			if seen[fmt.Sprint(op, history.OK)] == 0 || seen[fmt.Sprint(op, history.Fail)] == 0 {
				t.Errorf("operation %d never succeeds, or never fails: %v", op, seen)
			}
		}
	})
}

// TestUnnamedParticipants: a lock that counts for participants without a name is asked to, and the history names them.
func TestUnnamedParticipants(t *testing.T) {
	{
		synctest.Test(t, func(t *testing.T) {
			tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
			c.Script = (&workloadtest.Latch{}).Reply
			e := workloadtest.Env(c, tape, 0, 1, 3)
			e.Params.Kind, e.Can = workload.Latch, promise.Latch
			latchClient(t.Context(), workloadtest.StopAfter(c, 100), e)
			unnamed := 0
			for _, r := range c.Requests {
				if r.Op == history.CountDown && r.Owner == "" {
					unnamed++
				}
			}
			if unnamed == 0 {
				t.Error("no request is without a participant")
			}
			h := tape.History(t)
			for _, s := range h.Spans {
				if s.Op == history.OpCountDown && h.Owners[s.Owner] == "" {
					t.Errorf("a count-down at %v has no participant in the history", s.Call)
				}
			}
		})
	}
}
