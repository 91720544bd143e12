package witness

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// TestRequestLog: only what has changed is recorded, at most every 100 ms; clients that share a lock object are one;
// more than 64 processes are left out.
func TestRequestLog(t *testing.T) {
	l := requestLog{perInstance: 2, nodes: map[string]*nodeRequests{}}
	sample := func(ms int, all ...history.Received) []history.Received {
		return l.changes(history.Sample{Node: "n1", Time: time.Duration(ms) * time.Millisecond, Received: all})
	}
	a := history.Received{Client: 2, Dials: 1, Commands: 4, Keys: map[string]int{"orders": 2}}
	b := history.Received{Client: 3, Dials: 2, Commands: 1, Keys: map[string]int{"orders": 1}}
	c := history.Received{Client: 4, Dials: 1}
	got := sample(0, a, b, c)
	if len(got) != 2 || got[0].Client != 2 || got[0].Clients != 2 || got[0].Dials != 3 || got[0].Keys["orders"] != 3 ||
		got[1].Client != 4 {
		t.Fatalf("clients 2 and 3 share a lock object: %+v", got)
	}
	if a.Keys["orders"] != 2 {
		t.Error("adding up changed what was sampled")
	}
	a.Commands++
	if got := sample(50, a, b, c); got != nil {
		t.Errorf("50 ms later: %+v", got)
	}
	if got := sample(150, a, b, c); len(got) != 1 || got[0].Client != 2 || got[0].Commands != 6 {
		t.Errorf("one more command of client 2: %+v", got)
	}
	if got := sample(300, a, b, c); len(got) != 0 {
		t.Errorf("nothing has changed: %+v", got)
	}
	var crowd []history.Received
	for i := range 65 {
		crowd = append(crowd, history.Received{Client: 2 * i, Dials: 9})
	}
	if got := sample(600, crowd...); got != nil {
		t.Errorf("%d of 65 processes were recorded", len(got))
	}
}
