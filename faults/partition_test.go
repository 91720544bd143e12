package faults

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestPartition(t *testing.T) {
	for target, want := range map[string][]string{
		"client:3":    {"rule client:3>* 3 1"},
		"n2":          {"rule *>n2 3 1", "rule n2>* 3 1"},
		"client:3>n2": {"rule client:3>n2 3 1"},
		"n2>n3":       {"rule n2>n3 3 1", "rule n3>n2 3 1"},
		"n1+n2":       {"rule *>n1 3 1", "rule n1>* 3 1", "rule *>n2 3 1", "rule n2>* 3 1"},
	} {
		f := newFake(cluster.Quorum)
		in := inject(t, partitionSpec, f.env(), target)
		did(t, f, want...)
		noEffectYet(t, in)
		f.set(func() { f.waiting[strings.Fields(strings.ReplaceAll(want[0], ">", " "))[1]] = 7 })
		takesEffect(t, in)
		heals(t, in)
		if undone := f.done(); len(undone) != len(want) || !strings.HasSuffix(undone[0], " 3 0") {
			t.Errorf("%s: healed by %q", target, undone)
		}
	}
}

// TestPartitionShapes: in a ring each node reaches two others; with a bridge the halves do not reach each other.
func TestPartitionShapes(t *testing.T) {
	for target, want := range map[string][]string{
		"ring":   {"n1 n3", "n1 n4", "n1 n5", "n2 n4", "n2 n5", "n2 n6", "n3 n5", "n3 n6", "n4 n6"},
		"bridge": {"n1 n5", "n1 n6", "n2 n5", "n2 n6", "n3 n5", "n3 n6"},
	} {
		f := newFake(cluster.Sharded)
		inject(t, partitionSpec, f.env(), target)
		var rules []string
		for _, pair := range want {
			a, b, _ := strings.Cut(pair, " ")
			rules = append(rules, "rule "+a+">"+b+" 3 1", "rule "+b+">"+a+" 3 1")
		}
		did(t, f, rules...)
	}
}

// TestPartitionWithARealClient: a request sent during the partition is executed after healing, on the same connection.
func TestPartitionWithARealClient(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, partitionSpec, Env{Cluster: c}, "client:0")
	client.send(t, "SET k v")
	client.expect(t, "silence")
	takesEffect(t, in)
	if got := run(t, c, "n1", "GET", "k"); got != nil {
		t.Errorf("the request has arrived: %v", got)
	}
	heals(t, in)
	client.expect(t, "+OK")
}
