package cluster

import "fmt"

// TopologySpec is a row of the catalogue of topologies.
type TopologySpec struct {
	Name string
	Doc  string // one sentence
}

// Topologies is every kind of topology.
func Topologies() []TopologySpec {
	return []TopologySpec{
		{Single, "one master, no replica."},
		{Sentinel, "one master, replicas (2), and Sentinels (3) that promote a replica when the master dies."},
		{Quorum, "N independent masters (5) without replicas, for RedLock."},
	}
}

// Defaults is t with the kind's default in place of every zero count.
func (t Topology) Defaults() Topology {
	set := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	switch t.Kind {
	case Quorum:
		set(&t.Masters, 5)
	case Sentinel:
		set(&t.Replicas, 2)
		set(&t.Sentinels, 3)
	}
	return t
}

// Bounds of a topology on one machine.
const (
	maxNodes     = 15
	minSentinels = 3 // with two, nobody has a majority when one is gone (redis.io, Sentinel)
)

// Validate says what is wrong with t, after Defaults.
func (t Topology) Validate() error {
	switch t.Kind {
	case Single:
		if t.Masters > 1 || t.Replicas != 0 || t.Sentinels != 0 {
			return fmt.Errorf("topology single is one master alone: leave out masters, replicas and sentinels")
		}
	case Sentinel:
		if t.Masters > 1 || t.Replicas < 1 || t.Replicas > maxNodes-1 {
			return fmt.Errorf("topology sentinel has one master and 1 to %d replicas, not %d", maxNodes-1, t.Replicas)
		}
		if t.Sentinels < minSentinels || t.Sentinels > maxNodes {
			return fmt.Errorf("topology sentinel has %d to %d sentinels, not %d", minSentinels, maxNodes, t.Sentinels)
		}
	case Quorum:
		if t.Replicas != 0 || t.Sentinels != 0 {
			return fmt.Errorf("topology quorum has no replicas and no sentinels")
		}
		if t.Masters < 3 || t.Masters > maxNodes || t.Masters%2 == 0 {
			return fmt.Errorf("topology quorum has an odd number of masters from 3 to %d, not %d", maxNodes, t.Masters)
		}
	default:
		return fmt.Errorf("no topology is called %q", t.Kind)
	}
	return nil
}

// Size is the number of data servers.
func (t Topology) Size() int {
	t = t.Defaults()
	if t.Kind == Quorum {
		return t.Masters
	}
	return 1 + t.Replicas
}
