package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestOverlaps: faults that control the same resource are found.
func TestOverlaps(t *testing.T) {
	c := newFake(cluster.Sentinel)
	held := func(name, target string) []Resource {
		row, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		return row.ResourcesAt(c, target)
	}
	for _, test := range []struct {
		a, on, b, with string
		want           bool
	}{
		{"kill", "n1", "restart", "n1", true},
		{"kill", "n1", "restart", "n2", false},
		{"kill", "n1", "pause-node", "n1", false},
		{"clock-jump", "n1", "clock-drift", "n1", true},
		{"replication-hold", "n1", "replication-hold", "n2", false},
		{"replication-hold", "n1", "replication-hold", "n3>n1", true},
		{"replication-hold", "n1", "replication-lag", "n1", true},
		{"replication-hold", "n1", "wait-starved", "n1", false}, // the other direction
		{"partition", "n1", "replication-hold", "n1", true},
		{"partition", "n2", "replication-hold", "n1", true},
		{"split-brain", "n1", "wait-starved", "n1", true},
		{"reply-lost", "client:1", "reply-late", "client:1", true},
		{"reply-lost", "client:1", "reply-late", "client:2", false},
		{"reply-lost", "client:1", "partition-one-way", "client:1", false},
		{"latency", "all", "reply-late", "client:2", true},
		{"pause-client", "client:1", "pause-client", "client:1", true},
		{"pause-client", "client:1", "pause-client", "client:2", false},
		{"pause-client", "client:1", "client-crash", "client:1", false},
	} {
		got := false
		for _, g := range held(test.a, test.on) {
			for _, h := range held(test.b, test.with) {
				if g.Overlaps(h) != h.Overlaps(g) {
					t.Errorf("%v and %v overlap in one direction only", g, h)
				}
				got = got || g.Overlaps(h)
			}
		}
		if got != test.want {
			t.Errorf("%s %s and %s %s: %v, want %v", test.a, test.on, test.b, test.with, got, test.want)
		}
	}
}
