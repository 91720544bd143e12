package reports

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// witness is the samples of a run by node. A state is known at the instants
// when it was asked for, and is taken to last in between; where nobody asked
// for long, it is not known.
type witness struct {
	nodes []string // in the order of the manifest
	addrs map[string]string
	by    map[string][]history.Sample
	gap   time.Duration // samples further apart than this do not join
}

func newWitness(samples []history.Sample, nodes []cluster.Node) witness {
	w := witness{addrs: map[string]string{}, by: map[string][]history.Sample{}}
	for _, n := range nodes {
		w.nodes = append(w.nodes, n.Name)
		w.addrs[n.Name] = n.Addr
	}
	var steps []time.Duration
	for _, s := range samples {
		before := w.by[s.Node]
		if len(before) > 0 {
			steps = append(steps, s.Time-before[len(before)-1].Time)
		}
		w.by[s.Node] = append(before, s)
		if !slices.Contains(w.nodes, s.Node) {
			w.nodes = append(w.nodes, s.Node)
		}
	}
	w.gap = 200 * time.Millisecond
	if len(steps) > 0 {
		slices.Sort(steps)
		w.gap = max(w.gap, 5*steps[len(steps)/2])
	}
	return w
}

// name is a node with its address, as sentences have it.
func (w *witness) name(node string) string {
	if a := w.addrs[node]; a != "" {
		return node + " (" + a + ")"
	}
	return node
}

// stretch is a time during which a node was seen in one state.
type stretch struct {
	node        string
	from, to    time.Duration
	first, last history.Sample
}

// stretches joins neighbouring samples of node that are alike and overlap [from, to].
func (w *witness) stretches(node string, from, to time.Duration, alike func(a, b *history.Sample) bool) []stretch {
	samples := w.by[node]
	start := sort.Search(len(samples), func(i int) bool { return samples[i].Time >= from })
	start = max(start-1, 0)
	var all []stretch
	for i := start; i < len(samples) && samples[i].Time <= to; i++ {
		s := samples[i]
		end := s.Time
		if i+1 < len(samples) && samples[i+1].Time-s.Time <= w.gap {
			end = samples[i+1].Time
		}
		if n := len(all); n > 0 && all[n-1].to == s.Time && alike(&all[n-1].last, &s) {
			all[n-1].to, all[n-1].last = end, s
			continue
		}
		all = append(all, stretch{node: node, from: s.Time, to: end, first: s, last: s})
	}
	return all
}

// sameRole: up or down alike, and the same role.
func sameRole(a, b *history.Sample) bool { return a.Up == b.Up && a.Role == b.Role }

// sameHolder: up or down alike, and the same owner of key.
func sameHolder(key string) func(a, b *history.Sample) bool {
	return func(a, b *history.Sample) bool { return a.Up == b.Up && a.Keys[key].Owner == b.Keys[key].Owner }
}

// sighting is the first time that a node was seen with a certain owner.
type sighting struct {
	node string
	at   time.Duration
	role string
}

// sightings are the nodes that had owner in key, in the order in which they were
// seen, looking at [from, to].
func (w *witness) sightings(key, owner string, from, to time.Duration) []sighting {
	var all []sighting
	for _, node := range w.nodes {
		samples := w.by[node]
		i := sort.Search(len(samples), func(i int) bool { return samples[i].Time >= from })
		for ; i < len(samples) && samples[i].Time <= to; i++ {
			if sameOwner(samples[i].Keys[key].Owner, owner) {
				all = append(all, sighting{node, samples[i].Time, samples[i].Role})
				break
			}
		}
	}
	sort.SliceStable(all, func(i, k int) bool { return all[i].at < all[k].at })
	return all
}

// granter is the node that a hold was granted by: the first that was seen with
// its owner. A replica may be looked at before its master in the same round, so
// a master seen within one round goes first. Empty if nobody saw it.
func (w *witness) granter(all []sighting) sighting {
	if len(all) == 0 {
		return sighting{}
	}
	for _, s := range all {
		if s.role == "master" && s.at-all[0].at <= w.gap/2 {
			return s
		}
	}
	return all[0]
}

// onlyMaster is the node that said it was master when it was last asked before
// t, if there was one and no more; a node that died in that moment counts.
func (w *witness) onlyMaster(t time.Duration) string {
	only := ""
	for _, node := range w.nodes {
		samples := w.by[node]
		i := sort.Search(len(samples), func(i int) bool { return samples[i].Time > t }) - 1
		if i < 0 || t-samples[i].Time > w.gap || !samples[i].Up || samples[i].Role != "master" {
			continue
		}
		if only != "" {
			return ""
		}
		only = node
	}
	return only
}

// watched says whether node answered at least once within [from, to].
func (w *witness) watched(node string, from, to time.Duration) bool {
	samples := w.by[node]
	i := sort.Search(len(samples), func(i int) bool { return samples[i].Time >= from })
	for ; i < len(samples) && samples[i].Time <= to; i++ {
		if samples[i].Up {
			return true
		}
	}
	return false
}

// promotion is the first time in [from, to] that node was seen as master after
// it had been seen as something else.
func (w *witness) promotion(node string, from, to time.Duration) (time.Duration, bool) {
	other := false
	for _, s := range w.by[node] {
		if s.Time > to {
			break
		}
		if s.Up && s.Role != "master" {
			other = true
		}
		if s.Up && s.Role == "master" {
			if other && s.Time >= from {
				return s.Time, true
			}
			other = false
		}
	}
	return 0, false
}

// down is the first time in [from, to] that node did not answer.
func (w *witness) down(node string, from, to time.Duration) (time.Duration, bool) {
	for _, s := range w.by[node] {
		if s.Time >= from && s.Time <= to && !s.Up {
			return s.Time, true
		}
	}
	return 0, false
}

// sameOwner compares an owner as a node has it with the harness's: locks may
// put a connection or a thread number beside the id.
func sameOwner(seen, owner string) bool {
	if owner == "" {
		return false
	}
	return seen == owner || len(owner) >= 6 && strings.Contains(seen, owner)
}
