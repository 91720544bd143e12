package overlap

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/kept"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// TestGranterIsMaster: a replica that is sampled with a hold first did not grant it, even if it is promoted later.
func TestGranterIsMaster(t *testing.T) {
	sample := func(t float64, node, role, owner string) history.Sample {
		s := history.Sample{Time: ms(t), Sent: ms(t), Node: node, Up: true, Role: role}
		if owner != "" {
			s.Keys = map[string]history.KeyState{"orders": {Owner: owner, Count: 1, TTL: ms(1000)}}
		}
		return s
	}
	for _, test := range []struct {
		name    string
		samples []history.Sample
		want    string
	}{
		{"a replica is sampled first", []history.Sample{sample(10, "n1", "master", ""), sample(10, "n2", "slave", ""),
			sample(200, "n2", "slave", "own-1"), sample(400, "n1", "master", "own-1")}, "n1"},
		{"a replica is promoted with the hold", []history.Sample{sample(10, "n1", "master", ""),
			sample(10, "n2", "slave", ""), sample(500, "n2", "master", "own-1")}, ""},
		{"an attempt before the grant failed", []history.Sample{sample(10, "n1", "master", "own-1"),
			sample(200, "n1", "master", ""), sample(400, "n2", "master", "own-1")}, "n2"},
		{"the key is gone after the grant", []history.Sample{sample(200, "n1", "master", "own-1"),
			sample(400, "n1", "master", ""), sample(500, "n2", "master", "own-1")}, "n1"},
		{"a replica is promoted before the grant", []history.Sample{sample(10, "n2", "slave", ""),
			sample(90, "n2", "master", ""), sample(500, "n2", "master", "own-1")}, "n2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := evidence.New(rundir.Manifest{Nodes: []cluster.Node{{Name: "n1"}, {Name: "n2"}}}, &history.History{Owners: []string{"own-1"}},
				test.samples, checker.Judgement{})
			p := &Pair{R: r, Key: "orders"}
			h := &evidence.Hold{Hold: checker.Hold{From: ms(300), Owner: 0, Span: kept.None}}
			if got := p.granter(p.firstWith(h, evidence.Interval{Until: ms(1000)}), h.From); got != test.want {
				t.Errorf("granted by %q, want %q", got, test.want)
			}
		})
	}
}
