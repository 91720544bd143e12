package faults

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// every takes every target.
var every = Spec{Name: "every", Targets: []Target{Master, Replica, Holder, Waiter, Node, Client}}

func TestResolve(t *testing.T) {
	sentinel := newFake(cluster.Sentinel)
	moved := newFake(cluster.Sentinel)
	moved.roles = map[string]string{"n2": "master", "n3": "slave"} // n1 is down
	dead := newFake(cluster.Sentinel)
	dead.roles = nil
	people, nobody := crowd{holder: 4, waiter: 2}, crowd{holder: -1, waiter: -1}
	for _, test := range []struct {
		name    string
		cluster cluster.Cluster
		crowd   ClientState
		target  string
		want    string
		err     string
	}{
		{"default", sentinel, nobody, "", "n1", ""},
		{"master", sentinel, nobody, "master", "n1", ""},
		{"the master that is one now", moved, nobody, "master", "n2", ""},
		{"replica", sentinel, nobody, "replica", "n2", ""},
		{"the replica that is one now", moved, nobody, "replica", "n3", ""},
		{"master of a quorum", newFake(cluster.Quorum), nobody, "master", "n1", ""},
		{"no master", dead, nobody, "master", "", "no node says that it is a master"},
		{"no replica", newFake(cluster.Quorum), nobody, "replica", "", "no node says that it is a slave"},
		{"no witness", bare{cluster.Topology{Kind: cluster.Single}}, nobody, "master", "", "no node says"},
		{"holder", sentinel, people, "holder", "client:4", ""},
		{"no holder", sentinel, nobody, "holder", "", "no client holds the lock now"},
		{"waiter", sentinel, people, "waiter", "client:2", ""},
		{"no waiter", sentinel, nobody, "waiter", "", "no client waits for the lock now"},
		{"node", sentinel, nobody, "n3", "n3", ""},
		{"node that is not there", sentinel, nobody, "n4", "", "there is no node n4: the topology has 3"},
		{"client", sentinel, nobody, "client:7", "client:7", ""},
		{"cluster", sentinel, nobody, "cluster", "cluster", ""},
	} {
		got, err := every.Resolve(t.Context(), test.cluster, test.crowd, test.target)
		if got != test.want || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: Resolve(%q) = %q, %v, want %q, %q", test.name, test.target, got, err, test.want, test.err)
		}
	}
}

// slow is a cluster that is too busy to answer the first looks.
type slow struct {
	*fake
	looks atomic.Int32
}

func (s *slow) Sample(ctx context.Context, node string, keys []string) history.Sample {
	if s.looks.Add(1) <= 7 {
		return history.Sample{Node: node}
	}
	return s.fake.Sample(ctx, node, keys)
}

// TestResolveWaitsForABusyCluster: two hundred clients that came at once made
// replication-hold miss its master.
func TestResolveWaitsForABusyCluster(t *testing.T) {
	got, err := Spec{Targets: []Target{Master}}.Resolve(t.Context(), &slow{fake: newFake(cluster.Sentinel)}, crowd{}, "")
	if got != "n1" || err != nil {
		t.Errorf("Resolve = %q, %v, want n1", got, err)
	}
}

func TestAims(t *testing.T) {
	for target, words := range map[string]string{
		"": "kill pause-client", "master": "kill", "replica": "kill", "n1": "kill", "n15": "kill",
		"holder": "pause-client", "waiter": "pause-client", "client:0": "pause-client", "client:999": "pause-client",
		"n0": "", "n01": "", "n": "", "n1 ": "", "client:": "", "client:-1": "", "client:01": "", "client": "", "Master": "",
		"cluster": "", "s1": "",
	} {
		for _, s := range []Spec{killSpec, pauseClientSpec} {
			err := s.CheckTarget(target)
			if good := strings.Contains(" "+words+" ", " "+s.Name+" "); good != (err == nil) {
				t.Errorf("%s at %q: %v, want it good: %v", s.Name, target, err, good)
			}
			if err != nil && !strings.Contains(err.Error(), string(s.Targets[0])) {
				t.Errorf("%v does not say what it takes", err)
			}
		}
	}
}

func TestMisses(t *testing.T) {
	sentinel := cluster.Topology{Kind: cluster.Sentinel}.Defaults()
	single := cluster.Topology{Kind: cluster.Single}
	for _, test := range []struct {
		target   string
		topology cluster.Topology
		want     string
	}{
		{"", single, ""}, {"master", single, ""}, {"holder", single, ""}, {"cluster", single, ""},
		{"replica", sentinel, ""}, {"replica", single, "topology single has no replica"},
		{"n1", single, ""}, {"n2", single, "there is no node n2: the topology has 1"},
		{"n3", sentinel, ""}, {"n4", sentinel, "there is no node n4: the topology has 3"},
		{"n99999999999999999999", sentinel, "there is no node n99999999999999999999"},
		{"client:4", single, ""}, {"client:5", single, "there is no client:5: the workload has 5 clients"},
		{"client:99999999999999999999", single, "there is no client:99999999999999999999"},
	} {
		got := every.MissingTarget(test.target, test.topology, 5)
		if (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("Misses(%q, %s) = %q, want %q", test.target, test.topology.Kind, got, test.want)
		}
	}
}

// TestTargetsOfQuorumsAndLinks: words for several nodes, for the one that
// decides, for the one that is behind, and for two ends of a link.
func TestTargetsOfQuorumsAndLinks(t *testing.T) {
	quorum, sentinel := newFake(cluster.Quorum), newFake(cluster.Sentinel)
	quorum.holds = map[string]string{"n2": "a", "n3": "a", "n5": "a", "n1": "b"}
	sentinel.offsets = map[string]int64{"n1": 90, "n2": 70, "n3": 80}
	for _, test := range []struct {
		f           *fake
		word, where string
	}{
		{quorum, "minority", "n1+n2"}, {quorum, "majority", "n1+n2+n3"}, {quorum, "deciding", "n2"},
		{sentinel, "behind", "n2"}, {quorum, "holder>n3", "client:4>n3"}, {sentinel, "waiter>master", "client:1>n1"},
		{sentinel, "n3>master", "n3>n1"}, {sentinel, "replica>master", "n2>n1"}, {quorum, "client:2>n5", "client:2>n5"},
	} {
		row := partitionSpec
		row.Targets = append(row.Targets, Behind)
		if err := row.CheckTarget(test.word); err != nil {
			t.Errorf("%s: %v", test.word, err)
		}
		if why := row.MissingTarget(test.word, test.f.Topology(), 5); why != "" {
			t.Errorf("%s: %s", test.word, why)
		}
		got, err := row.Resolve(t.Context(), test.f, crowd{holder: 4, waiter: 1}, test.word)
		if err != nil || got != test.where {
			t.Errorf("%s is %q, %v, want %s", test.word, got, err, test.where)
		}
	}
	quorum.holds["n1"] = "a" // four have it: none decides
	if got, err := partitionSpec.Resolve(t.Context(), quorum, crowd{}, "deciding"); err == nil {
		t.Errorf("of four, %s decides", got)
	}
	for _, word := range []string{"n1>client:0", "holder>waiter", "n1>", ">n1", "n1>n2>n3", "holder>the moon"} {
		if err := partitionSpec.CheckTarget(word); err == nil {
			t.Errorf("partition can be aimed at %q", word)
		}
	}
	for word, f := range map[string]*fake{"majority": sentinel, "ring": quorum, "bridge": sentinel, "behind": quorum,
		"client:7>n1": quorum, "holder>n9": quorum} {
		if why := partitionSpec.MissingTarget(word, f.Topology(), 5); why == "" {
			t.Errorf("%s has a target %s", f.Topology().Kind, word)
		}
	}
}
