package evidence

import (
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestOneServer: a replica that was never seen as master has granted and renewed nothing.
func TestOneServer(t *testing.T) {
	sample := func(node, role string) history.Sample { return history.Sample{Node: node, Up: true, Role: role} }
	for _, test := range []struct {
		name    string
		nodes   int
		samples []history.Sample
		want    bool
	}{
		{"one node", 1, nil, true},
		{"no samples", 2, nil, false},
		{"a replica", 2, []history.Sample{sample("n1", "master"), sample("n2", "slave"), sample("n1", "master")}, true},
		{"a failover", 2, []history.Sample{sample("n1", "master"), sample("n2", "slave"), sample("n2", "master")}, false},
	} {
		r := Run{Samples: test.samples}
		r.Manifest.Nodes = make([]cluster.Node, test.nodes)
		if got := r.OneServer(); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}
