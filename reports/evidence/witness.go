package evidence

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// witness is the samples of a run by node. A state is assumed to last until the
// next sample, unless that is further away than gap.
type witness struct {
	Nodes   []string // in the order of the manifest
	addrs   map[string]string
	Samples map[string][]history.Sample
	Gap     time.Duration // states do not last across a longer gap
}

func newWitness(samples []history.Sample, nodes []cluster.Node) witness {
	w := witness{addrs: map[string]string{}, Samples: map[string][]history.Sample{}}
	for _, n := range nodes {
		w.Nodes = append(w.Nodes, n.Name)
		w.addrs[n.Name] = n.Addr
	}
	var steps []time.Duration
	for _, s := range samples {
		before := w.Samples[s.Node]
		if len(before) > 0 {
			steps = append(steps, s.Time-before[len(before)-1].Time)
		}
		w.Samples[s.Node] = append(before, s)
		if !slices.Contains(w.Nodes, s.Node) {
			w.Nodes = append(w.Nodes, s.Node)
		}
	}
	w.Gap = 200 * time.Millisecond
	if len(steps) > 0 {
		slices.Sort(steps)
		w.Gap = max(w.Gap, 5*steps[len(steps)/2])
	}
	return w
}

// Name is a node with its address.
func (w *witness) Name(node string) string {
	if a := w.addrs[node]; a != "" {
		return node + " (" + a + ")"
	}
	return node
}

// During are the samples of node in [from, to].
func (w *witness) During(node string, from, to time.Duration) []history.Sample {
	samples := w.Samples[node]
	i := sort.Search(len(samples), func(i int) bool { return samples[i].Time >= from })
	k := sort.Search(len(samples), func(k int) bool { return samples[k].Time > to })
	return samples[i:max(i, k)]
}

// NodeState is an interval in which a node had the same state.
type NodeState struct {
	Interval
	First, Last history.Sample
}

// InOrder are the samples of all nodes in [from, to], in order of time.
func (w *witness) InOrder(from, to time.Duration) []*history.Sample {
	var all []*history.Sample
	for _, node := range w.Nodes {
		for s := range Each(w.During(node, from, to)) {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *history.Sample) int { return cmp.Compare(a.Time, b.Time) })
	return all
}

// States joins consecutive samples of node for which same is true. It returns the states that overlap shown.
func (w *witness) States(node string, shown Interval, same func(a, b *history.Sample) bool) []NodeState {
	samples := w.Samples[node]
	start := sort.Search(len(samples), func(i int) bool { return samples[i].Time >= shown.From })
	start = max(start-1, 0)
	var all []NodeState
	for i := start; i < len(samples) && samples[i].Time <= shown.Until; i++ {
		s := samples[i]
		end := s.Time
		if i+1 < len(samples) && samples[i+1].Time-s.Time <= w.Gap {
			end = samples[i+1].Time
		}
		if n := len(all); n > 0 && all[n-1].Until == s.Time && same(&all[n-1].Last, &s) {
			all[n-1].Until, all[n-1].Last = end, s
			continue
		}
		all = append(all, NodeState{Interval: Interval{s.Time, end}, First: s, Last: s})
	}
	return all
}

// SameRole compares availability and role.
func SameRole(a, b *history.Sample) bool { return a.Up == b.Up && a.Role == b.Role }

// Only is the only node that ok accepts. Empty: none, or several.
func (w *witness) Only(ok func(node string) bool) string {
	nodes := AllOf(w.Nodes, func(node *string) bool { return ok(*node) })
	if len(nodes) != 1 {
		return ""
	}
	return *nodes[0]
}

// IsMaster reports whether a node replied to a sample as a master.
func IsMaster(s *history.Sample) bool { return s.Up && s.Role == "master" }

// SoleMaster is the node whose last sample before t says that it is master, if
// there is exactly one; a node that died since counts.
func (w *witness) SoleMaster(t time.Duration) string {
	return w.Only(func(node string) bool {
		last := w.Latest(node, t)
		return last != nil && IsMaster(last)
	})
}

// Sampled reports whether node replied at least once in [from, to].
func (w *witness) Sampled(node string, from, to time.Duration) bool {
	return FirstOf(w.During(node, from, to), func(s *history.Sample) bool { return s.Up }) != nil
}

// Promotion is the first sample in [from, to] that shows node as master after it
// had been seen as something else; nil if there is none.
func (w *witness) Promotion(node string, from, to time.Duration) *history.Sample {
	other := false
	return FirstOf(w.During(node, 0, to), func(s *history.Sample) bool {
		promoted := IsMaster(s) && other && s.Time >= from
		if s.Up {
			other = !IsMaster(s)
		}
		return promoted
	})
}

// FirstDown is the first sample in [from, to] to which node did not reply; nil if there is none.
func (w *witness) FirstDown(node string, from, to time.Duration) *history.Sample {
	return FirstOf(w.During(node, from, to), func(s *history.Sample) bool { return !s.Up })
}

// Latest is the last sample of node in the time before t in which a state lasts; nil if there is none.
func (w *witness) Latest(node string, t time.Duration) *history.Sample {
	return LastOf(w.During(node, t-w.Gap, t), func(*history.Sample) bool { return true })
}

// Has reports whether owner holds key in a sample, perhaps with others.
func Has(s *history.Sample, key, owner string) bool {
	k := s.Keys[key]
	return sameOwner(k.Owner, owner) || slices.ContainsFunc(k.Owners, func(o string) bool { return sameOwner(o, owner) })
}

// sameOwner compares an owner in a sample with the history's: some locks append a connection or a thread to the id,
// others, after a space, the end of the lease.
func sameOwner(seen, owner string) bool {
	if owner == "" {
		return false
	}
	return seen == owner || strings.HasPrefix(seen, owner+" ") || kept.PartOf(seen, owner)
}
