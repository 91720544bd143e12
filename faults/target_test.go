package faults

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// anyTarget takes most kinds of target.
var anyTarget = Spec{Name: "any", Targets: []Target{Master, Replica, Holder, Waiter, Node, Client}}

func TestResolve(t *testing.T) {
	sentinel := newFake(cluster.Sentinel)
	moved := newFake(cluster.Sentinel)
	moved.roles = map[string]string{"n2": "master", "n3": "slave"} // n1 is down
	dead := newFake(cluster.Sentinel)
	dead.roles = nil
	clients, idle := clientState{holder: 4, waiter: 2}, clientState{holder: -1, waiter: -1}
	for _, test := range []struct {
		name    string
		cluster cluster.Cluster
		clients ClientState
		target  string
		want    string
		err     string
	}{
		{"master", sentinel, idle, "master", "n1", ""},
		{"the current master", moved, idle, "master", "n2", ""},
		{"replica", sentinel, idle, "replica", "n2", ""},
		{"the current replica", moved, idle, "replica", "n3", ""},
		{"master of a quorum", newFake(cluster.Quorum), idle, "master", "n1", ""},
		{"no master", dead, idle, "master", "", "no node reports the role of master"},
		{"no replica", newFake(cluster.Quorum), idle, "replica", "", "no node reports the role of slave"},
		{"no witness", planned{cluster.Topology{Kind: cluster.Single}}, idle, "master", "", "no node reports"},
		{"holder", sentinel, clients, "holder", "client:4", ""},
		{"no holder", sentinel, idle, "holder", "", "no client holds the lock now"},
		{"waiter", sentinel, clients, "waiter", "client:2", ""},
		{"no waiter", sentinel, idle, "waiter", "", "no client waits for the lock now"},
		{"node", sentinel, idle, "n3", "n3", ""},
		{"client", sentinel, idle, "client:7", "client:7", ""},
		{"a Sentinel and the current master", moved, idle, "s1>master", "s1>n2", ""},
		{"cluster", sentinel, idle, "cluster", "cluster", ""},
	} {
		got, err := Resolve(t.Context(), test.cluster, test.clients, test.target)
		if got != test.want || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: Resolve(%q) = %q, %v, want %q, %q", test.name, test.target, got, err, test.want, test.err)
		}
	}
}

// busy is a cluster that does not reply to the first samples.
type busy struct {
	*fake
	samples atomic.Int32
}

func (b *busy) Sample(ctx context.Context, node string, keys []string) history.Sample {
	if b.samples.Add(1) <= 7 {
		return history.Sample{Node: node}
	}
	return b.fake.Sample(ctx, node, keys)
}

// TestResolveWaitsForABusyCluster: two hundred clients that arrived at once made replication-hold miss its master.
func TestResolveWaitsForABusyCluster(t *testing.T) {
	got, err := Resolve(t.Context(), &busy{fake: newFake(cluster.Sentinel)}, clientState{}, "master")
	if got != "n1" || err != nil {
		t.Errorf("Resolve = %q, %v, want n1", got, err)
	}
}

func TestCheckTarget(t *testing.T) {
	for target, words := range map[string]string{
		"": "kill pause-client", "master": "kill", "replica": "kill", "n1": "kill", "n15": "kill",
		"holder": "pause-client", "waiter": "pause-client", "client:0": "pause-client", "client:999": "pause-client",
		"n0": "", "n01": "", "n": "", "n1 ": "", "client:": "", "client:-1": "", "client:01": "", "client": "", "Master": "",
		"cluster": "", "s1": "",
	} {
		for _, s := range []Spec{killSpec, pauseClientSpec} {
			err := s.CheckTarget(target)
			if good := strings.Contains(" "+words+" ", " "+s.Name+" "); good != (err == nil) {
				t.Errorf("%s at %q: %v, want it valid: %v", s.Name, target, err, good)
			}
			if err != nil && !strings.Contains(err.Error(), string(s.Targets[0])) {
				t.Errorf("%v does not name the valid targets", err)
			}
		}
	}
}

func TestMissingTarget(t *testing.T) {
	sentinel := cluster.Topology{Kind: cluster.Sentinel}.Defaults()
	single := cluster.Topology{Kind: cluster.Single}
	for _, test := range []struct {
		target   string
		topology cluster.Topology
		want     string
	}{
		{"", single, ""}, {"master", single, ""}, {"holder", single, ""}, {"cluster", single, ""},
		{"replica", sentinel, ""}, {"replica", single, "topology single has no replica"},
		{"n1", single, ""}, {"n2", single, "node n2 does not exist: the topology has 1 node"},
		{"n3", sentinel, ""}, {"n4", sentinel, "node n4 does not exist: the topology has 3 nodes"},
		{"n99999999999999999999", sentinel, "node n99999999999999999999 does not exist"},
		{"client:4", single, ""}, {"client:5", single, "client:5 does not exist: the workload has 5 clients"},
		{"client:99999999999999999999", single, "client:99999999999999999999 does not exist"},
	} {
		got := anyTarget.MissingTarget(test.target, test.topology, 5)
		if (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("Misses(%q, %s) = %q, want %q", test.target, test.topology.Kind, got, test.want)
		}
	}
}

// TestTargetsOfQuorumsAndLinks: words for several nodes, for a deciding node, for the replica that is behind, and for
// the ends of a link.
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
		{sentinel, "n3>master", "n3>n1"}, {sentinel, "s1>s3", "s1>s3"}, {sentinel, "replica>master", "n2>n1"}, {quorum, "client:2>n5", "client:2>n5"},
	} {
		row := partitionSpec
		row.Targets = append(row.Targets, Behind)
		if err := row.CheckTarget(test.word); err != nil {
			t.Errorf("%s: %v", test.word, err)
		}
		if why := row.MissingTarget(test.word, test.f.Topology(), 5); why != "" {
			t.Errorf("%s: %s", test.word, why)
		}
		planned := row.PlannedTarget(test.word, test.f.Topology())
		got, err := Resolve(t.Context(), test.f, clientState{holder: 4, waiter: 1}, planned)
		if err != nil || got != test.where {
			t.Errorf("%s is %q, %v, want %s", test.word, got, err, test.where)
		}
	}
	quorum.holds["n1"] = "a" // four have the key: no single one decides
	if got, err := Resolve(t.Context(), quorum, clientState{}, "deciding"); err == nil {
		t.Errorf("with four keys, %s is deciding", got)
	}
	for _, word := range []string{"n1>client:0", "holder>waiter", "n1>", ">n1", "n1>n2>n3", "holder>the moon", "s1", "n1>s1", "s1>client:0"} {
		if err := partitionSpec.CheckTarget(word); err == nil {
			t.Errorf("partition takes the target %q", word)
		}
	}
	for word, f := range map[string]*fake{"majority": sentinel, "ring": quorum, "bridge": sentinel, "behind": quorum,
		"client:7>n1": quorum, "holder>n9": quorum, "s4>n1": sentinel, "s1>n4": sentinel, "s1>n1": quorum} {
		if why := partitionSpec.MissingTarget(word, f.Topology(), 5); why == "" {
			t.Errorf("%s has a target %s", f.Topology().Kind, word)
		}
	}
}

func TestNumberInAName(t *testing.T) {
	for name, want := range map[string]int{
		"n3": 3, "n15": 15, "client:0": 0, "client:7": 7, "n99999999999999999999": math.MaxInt,
		"nn3": 0, "client3": 0, "lice:n3": 0, "master": 0, "": 0,
	} {
		if got := numberIn(name); got != want {
			t.Errorf("numberIn(%q) = %d, want %d", name, got, want)
		}
	}
}
