package faults

import (
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Grip is one thing that a fault has in its power as long as it is in force:
// the bytes of links in one direction or both, or anything else that has a name. Two
// faults with one thing in their power would heal each other.
type Grip struct {
	Thing string // such as "the process of n1"; "": a link
	Link  cluster.Link
	Dir   cluster.Direction
}

// String is the grip for people.
func (g Grip) String() string {
	if g.Thing != "" {
		return g.Thing
	}
	return fmt.Sprintf("the link from %s to %s", g.Link.From, g.Link.To)
}

// Overlaps says whether g and h have something in common.
func (g Grip) Overlaps(h Grip) bool {
	if g.Thing != "" || h.Thing != "" {
		return g.Thing == h.Thing
	}
	return g.Dir&h.Dir != 0 && meet(g.Link.From, h.Link.From) && meet(g.Link.To, h.Link.To)
}

func meet(a, b string) bool { return a == b || a == cluster.Any || b == cluster.Any }

// Held is what a fault of row s would have in its power at target.
func (s Spec) Held(c cluster.Cluster, target string) []Grip {
	if s.Grips == nil {
		return []Grip{{Thing: s.Name + " " + target}}
	}
	return s.Grips(c, target)
}

// serverProcess is the grip of faults that end and start servers.
func serverProcess(_ cluster.Cluster, target string) (all []Grip) {
	for _, node := range names(target) {
		all = append(all, Grip{Thing: "the process of " + node})
	}
	return all
}

// wallClock is the grip of faults that set clocks.
func wallClock(_ cluster.Cluster, node string) []Grip { return []Grip{{Thing: "the clock of " + node}} }
