package faults

import (
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Resource is one thing that a fault has in its power as long as it is in force:
// the bytes of links in one direction or both, or anything else that has a name. Two
// faults with one thing in their power would heal each other.
type Resource struct {
	Name string // such as "the process of n1"; "": a link
	Link cluster.Link
	Dir  cluster.Direction
}

// String names the resource.
func (g Resource) String() string {
	if g.Name != "" {
		return g.Name
	}
	return fmt.Sprintf("the link from %s to %s", g.Link.From, g.Link.To)
}

// Overlaps says whether g and h have something in common.
func (g Resource) Overlaps(h Resource) bool {
	if g.Name != "" || h.Name != "" {
		return g.Name == h.Name
	}
	return g.Dir&h.Dir != 0 && meet(g.Link.From, h.Link.From) && meet(g.Link.To, h.Link.To)
}

func meet(a, b string) bool { return a == b || a == cluster.Any || b == cluster.Any }

// ResourcesAt is what a fault of row s would have in its power at target.
func (s Spec) ResourcesAt(c cluster.Cluster, target string) []Resource {
	if s.Resources == nil {
		return []Resource{{Name: s.Name + " " + target}}
	}
	return s.Resources(c, target)
}

// serverProcess is the resource of faults that end and start servers.
func serverProcess(_ cluster.Cluster, target string) (all []Resource) {
	for _, node := range names(target) {
		all = append(all, Resource{Name: "the process of " + node})
	}
	return all
}

// wallClock is the resource of faults that set clocks.
func wallClock(_ cluster.Cluster, node string) []Resource {
	return []Resource{{Name: "the clock of " + node}}
}
