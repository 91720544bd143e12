package faults

import (
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Resource is something that a fault controls while it is in force: the traffic of links in one direction or both, or
// anything else that has a name. Two faults with the same resource would heal each other.
type Resource struct {
	Name string // such as "the process of n1"; "": a link
	Link cluster.Link
	Dir  cluster.Direction
}

// String names the resource.
func (r Resource) String() string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprintf("the link from %s to %s", r.Link.From, r.Link.To)
}

// Overlaps reports whether r and other have something in common.
func (r Resource) Overlaps(other Resource) bool {
	if r.Name != "" || other.Name != "" {
		return r.Name == other.Name
	}
	return r.Dir&other.Dir != 0 && sameEnd(r.Link.From, other.Link.From) && sameEnd(r.Link.To, other.Link.To)
}

func sameEnd(a, b string) bool { return a == b || a == cluster.Any || b == cluster.Any }

// ResourcesAt are the resources that a fault of row s would control at target.
func (s Spec) ResourcesAt(c cluster.Cluster, target string) []Resource {
	if s.Resources == nil {
		return []Resource{{Name: s.Name + " " + target}}
	}
	return s.Resources(c, target)
}

// ofEachNode names a resource of each node of a target: what, then the name of the node.
func ofEachNode(what string) func(cluster.Cluster, string) []Resource {
	return func(_ cluster.Cluster, target string) (all []Resource) {
		for _, node := range nodesOf(target) {
			all = append(all, Resource{Name: what + node})
		}
		return all
	}
}

// serverProcess is the resource of faults that end and start servers.
func serverProcess(c cluster.Cluster, target string) []Resource {
	return ofEachNode("the process of ")(c, target)
}

// link is the traffic in direction dir of the connections that from opens to to.
func link(from, to string, dir cluster.Direction) Resource {
	return Resource{Link: cluster.Link{From: from, To: to}, Dir: dir}
}

// between is all traffic between two ends, whichever opened the connection.
func between(a, b string) []Resource {
	return []Resource{link(a, b, cluster.Both), link(b, a, cluster.Both)}
}

// around is every link of a resolved target, in one direction (seen from the end that opened the connection) or both.
func around(target string, dir cluster.Direction) (all []Resource) {
	if from, to, pair := cutPair(target); pair {
		all = append(all, link(from, to, dir))
		if shape(from) == Node || isSentinel(to) {
			all = append(all, link(to, from, dir))
		}
		return all
	}
	switch shape(target) {
	case All:
		return []Resource{link(cluster.Any, cluster.Any, dir)}
	case Client:
		return []Resource{link(target, cluster.Any, dir)}
	}
	for _, node := range nodesOf(target) {
		all = append(all, link(cluster.Any, node, dir), link(node, cluster.Any, dir))
	}
	return all
}

// allTraffic is the traffic to and from a target.
func allTraffic(_ cluster.Cluster, target string) []Resource { return around(target, cluster.Both) }

// repliesTo is the traffic from servers to a client.
func repliesTo(_ cluster.Cluster, target string) []Resource { return around(target, cluster.Back) }

// replicationTo is the stream from a master to its replicas, or to the one of a pair. Replicas open the connection.
func replicationTo(c cluster.Cluster, target string) (all []Resource) {
	if replica, master, pair := cutPair(target); pair {
		return []Resource{link(replica, master, cluster.Back)}
	}
	t := c.Topology()
	for i, n := range c.Nodes() {
		if t.Kind == cluster.Sharded && nodeName(t.MasterOf(i+1)) != target {
			continue // a replica of another master, or a master
		}
		if n.Name != target {
			all = append(all, link(n.Name, target, cluster.Back))
		}
	}
	return all
}
