package reports

import (
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestNodesThatWereHitAreCounted: each by itself where a fault hits several, and none where it hits a client, a link
// or a group that the report does not know.
func TestNodesThatWereHitAreCounted(t *testing.T) {
	r := &Run{holds: []hold{{to: 10}}}
	for _, name := range []string{"n1", "n2", "n3"} {
		r.Manifest.Nodes = append(r.Manifest.Nodes, cluster.Node{Name: name})
	}
	for want, targets := range map[string][]string{
		"`kill` hit 1 of 3 nodes": {"n2"},
		"`kill` hit 2 of 3 nodes": {"n1+n2", "n2"},
		"`kill` hit 3 of 3 nodes": {"n1+n2", "n3"},
		"`kill` bit once":         {"n2>n1"},
		"`kill` bit 2 times":      {"n1", "client:0"},
		"`kill` bit 3 times":      {"ring", "all", ""},
	} {
		lives := make([]*faultLife, 0, len(targets))
		for _, target := range targets {
			lives = append(lives, &faultLife{name: "kill", target: target, inject: 5, bites: []history.Fault{{Time: 5}}})
		}
		if got := survivedOne(r, "kill", lives); got != want+" while the lock was held" {
			t.Errorf("%q: %s, want %s", targets, got, want)
		}
	}
}
