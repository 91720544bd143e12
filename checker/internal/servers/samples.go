package servers

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// This file is about the servers' data, as the witness has seen them. A sample is of some instant between Sent and
// Time. Only masters are read: a replica may be behind.

// NodeSamples are the samples of a history by node.
type NodeSamples struct {
	*View
	kept    []keptKey // see valuesIn
	first   []int32   // by sample: its first place in kept
	Nodes   [][]int32 // samples of one node that replied as a master, in the order of time
	Others  [][]int32 // by the same index: its samples since the first of these in which it was no master
	values  *kept.Values
	Stored  map[NodeKey]bool            // the node has stored the key for an owner, known or not
	Named   map[NodeKey][]time.Duration // when the node has named an owner of the history at the key
	Permits map[int32]bool              // the key is a semaphore's

	WrongHolds func() []WrongHold // see [NodeSamples.findWrongHolds]
	Ledgers    func() *ownerLedgers
	naming     func() []naming // see [NodeSamples.findNaming]
}

// keptKey is a key that a sample has.
type keptKey struct {
	key, owner int32         // index into History.Owners; none: it names no single owner of the history
	names      bool          // it names one at least
	shared     bool          // it has a list of owners
	Rest       time.Duration // of the lease; negative: no expiry
	Count      int32         // of a lock without modes; 0: not known
}

type NodeKey struct{ Node, Key int32 }

// naming is a sample that names an owner, by its place in nodes.
type naming struct{ owner, key, node, Place int32 }

// compare orders by owner, key, node and place.
func (n naming) compare(m naming) int {
	return cmp.Or(cmp.Compare(n.owner, m.owner), cmp.Compare(n.key, m.key), cmp.Compare(n.node, m.node),
		cmp.Compare(n.Place, m.Place))
}

// readSamples reads the samples; nil if there are none that can be read.
func (v *View) readSamples(o given.Options) *NodeSamples {
	if len(v.H.Samples) == 0 || v.Kept() == nil {
		return nil
	}
	s := &NodeSamples{View: v, first: make([]int32, len(v.H.Samples)+1), values: v.Kept(),
		kept: make([]keptKey, 0, len(v.H.Samples)), Named: make(map[NodeKey][]time.Duration), Stored: make(map[NodeKey]bool),
		Permits: make(map[int32]bool)}
	s.WrongHolds = sync.OnceValue(func() []WrongHold { return s.findWrongHolds(o) })
	s.Ledgers, s.naming = sync.OnceValue(s.newLedgers), sync.OnceValue(s.findNaming)
	s.read()
	return s
}

// Readable is h without the samples of a foreign lock.
func Readable(o given.Options, h *history.History) *history.History {
	if !o.ForeignLock || h.Samples == nil {
		return h
	}
	c := *h
	c.Samples = nil
	return &c
}

// readRecords reads the samples as far as they show which servers store any hold of a key, which they do without
// knowledge of how a lock stores its holds; nil if there are none that can be read.
func (v *View) readRecords(o given.Options) *NodeSamples {
	if !o.ForeignLock {
		return v.Samples()
	}
	h, ledger := *v.H, *v.View
	excuses := *ledger.View
	h.Samples = o.Values
	excuses.H = &h
	ledger.View = &excuses
	w := View{View: &ledger, Samples: v.Samples}
	return w.readSamples(o)
}

func (s *NodeSamples) read() {
	index := make(map[string]int)
	for i, x := range refs.All(s.H.Samples) {
		n, known := index[x.Node]
		s.keep(x)
		s.first[i+1] = int32(len(s.kept))
		if !x.Up || x.Role != "master" {
			if known {
				s.Others[n] = append(s.Others[n], i)
			}
			continue
		}
		if !known {
			n = len(s.Nodes)
			index[x.Node] = n
			s.Nodes, s.Others = append(s.Nodes, nil), append(s.Others, nil)
		}
		s.Nodes[n] = append(s.Nodes[n], i)
		for _, k := range s.valuesIn(i) {
			at := NodeKey{int32(n), k.key}
			if s.Stored[at] = true; k.names {
				s.Named[at] = append(s.Named[at], x.Time)
			}
		}
	}
}

// keep adds the values that a sample has of the keys of the history.
func (s *NodeSamples) keep(x *history.Sample) {
	if len(x.Keys) == 0 {
		return
	}
	for key, name := range s.H.Keys {
		state, held := x.Keys[name]
		if !held {
			continue
		}
		k := keptKey{key: int32(key), owner: refs.None, shared: len(state.Owners) > 0, Rest: state.TTL}
		if state.Limit > 0 {
			s.Permits[k.key] = true
		}
		if state.Mode == "" {
			k.Count = int32(state.Count)
		}
		if owner, known := s.values.Owner(state.Owner); known {
			k.owner, k.names = owner, true
		}
		k.names = k.names || slices.ContainsFunc(state.Owners, func(name string) bool {
			_, known := s.values.Owner(name)
			return known
		})
		s.kept = append(s.kept, k)
	}
}

// valuesIn are the values of sample i at the keys of the history, in their order.
func (s *NodeSamples) valuesIn(i int32) []keptKey { return s.kept[s.first[i]:s.first[i+1]] }

// ValueAt is the value of sample i at a key.
func (s *NodeSamples) ValueAt(i, key int32) (k keptKey, held bool) {
	for _, k := range s.valuesIn(i) {
		if k.key == key {
			return k, true
		}
	}
	return k, false
}

// findNaming finds the samples that name an owner at a key, sorted by [naming.compare].
func (s *NodeSamples) findNaming() (all []naming) {
	for node, samples := range s.Nodes {
		for place, i := range samples {
			for _, k := range s.valuesIn(i) {
				at := naming{k.owner, k.key, int32(node), int32(place)}
				if at.owner != refs.None {
					all = append(all, at)
				}
				if !k.shared {
					continue
				}
				for _, name := range s.H.Samples[i].Keys[s.H.Keys[k.key]].Owners {
					if owner, known := s.values.Owner(name); known && owner != k.owner {
						at.owner = owner
						all = append(all, at)
					}
				}
			}
		}
	}
	slices.SortFunc(all, naming.compare)
	return slices.Compact(all)
}

// NamedIn are the samples of a node that name an owner at a key and were sent at or after from.
func (s *NodeSamples) NamedIn(node int, at ledger.OwnerKey, from time.Duration) []naming {
	all := s.naming()
	samples := s.Nodes[node]
	place := sort.Search(len(samples), func(n int) bool { return s.H.Samples[samples[n]].Sent >= from })
	first, _ := slices.BinarySearchFunc(all, naming{at.Owner, at.Key, int32(node), int32(place)}, naming.compare)
	end, _ := slices.BinarySearchFunc(all, naming{at.Owner, at.Key, int32(node) + 1, 0}, naming.compare)
	return all[first:end]
}

// MovedFrom reports whether the last node that has named an owner at a key up to an instant is another one, or may be
// because no sample of a node names one before that: the slot of the key has moved, or has not moved yet.
func (s *NodeSamples) MovedFrom(node int, key int32, at time.Duration) bool {
	last := func(node int) time.Duration {
		times := s.Named[NodeKey{int32(node), key}]
		n, found := slices.BinarySearch(times, at)
		if found {
			return at
		}
		if n == 0 {
			return -1
		}
		return times[n-1]
	}
	own := last(node)
	for other := range s.Nodes {
		later := own < 0 && s.Named[NodeKey{int32(other), key}] != nil
		if other != node && (last(other) > own || later) {
			return true
		}
	}
	return false
}

// presence is whether a node keeps a hold of an owner.
type presence uint8

const (
	Absent  presence = iota
	Present          // its owner is named
	Unnamed          // the key is held by an unknown holder
)

// PresenceOf reports whether sample i has a hold of an owner at a key, and the rest of the lease that it keeps there.
func (s *NodeSamples) PresenceOf(i, owner, key int32) (is presence, rest time.Duration) {
	k, held := s.ValueAt(i, key)
	switch {
	case !held:
		return Absent, 0
	case k.owner == owner:
		return Present, k.Rest
	case k.shared && slices.Contains(s.H.Samples[i].Keys[s.H.Keys[key]].Owners, s.H.Owners[owner]):
		return Present, k.Rest
	case k.names:
		return Absent, k.Rest
	}
	return Unnamed, k.Rest
}

// OtherMaster reports whether another node acted as master for a key within slack of t. Then it is not known whose
// state counts: after a failover the old master may not know for a while that it was replaced.
func (s *NodeSamples) OtherMaster(node int, key int32, t, slack time.Duration) bool {
	for other := range s.Nodes {
		named := other != node && s.Named[NodeKey{int32(other), key}] != nil
		if named && len(s.Between(other, t-slack, segment.Later(t, slack))) > 0 {
			return true
		}
	}
	return false
}

// Between are the samples of a node that were taken entirely between two instants.
func (s *NodeSamples) Between(node int, from, until time.Duration) []int32 {
	all := s.Nodes[node]
	first := sort.Search(len(all), func(n int) bool { return s.H.Samples[all[n]].Sent >= from })
	last := sort.Search(len(all), func(n int) bool { return s.H.Samples[all[n]].Time >= until })
	return all[first:max(first, last)]
}

// Granted reports whether an operation gave its owner a hold, or a new lease of one.
func Granted(s *history.Span) bool {
	return s.Outcome == history.OK && s.Op != history.OpRelease && s.Op != history.OpForceRelease
}

// HeldElsewhere reports whether another node has a hold of a key within slack of t: a slot that migrates takes its keys
// along.
func (s *NodeSamples) HeldElsewhere(node int, key int32, t, slack time.Duration) bool {
	for other := range s.Nodes {
		if other == node {
			continue
		}
		for _, i := range s.Between(other, t-slack, segment.Later(t, slack)) {
			if _, held := s.ValueAt(i, key); held {
				return true
			}
		}
	}
	return false
}

// FirstNamed is the first sample of an interval in which a server has a hold of an owner; nil if there is none.
func (s *NodeSamples) FirstNamed(at ledger.OwnerKey, during segment.Segment) (first *history.Sample) {
	for node, samples := range s.Nodes {
		all := s.NamedIn(node, at, during.From)
		if len(all) == 0 {
			continue
		}
		if x := &s.H.Samples[samples[all[0].Place]]; x.Time < during.Until && (first == nil || x.Time < first.Time) {
			first = x
		}
	}
	return first
}

// SampledBetween reports whether a node was sampled within an interval.
func (s *NodeSamples) SampledBetween(node string, during segment.Segment) bool {
	return slices.ContainsFunc(s.H.Samples, func(x history.Sample) bool {
		return x.Node == node && x.Sent > during.From && x.Time < during.Until
	})
}

// PermitSamples visits the samples of each semaphore in the order of time, with the permits that the server keeps,
// until visit returns false.
func (s *NodeSamples) PermitSamples(visit func(key int32, x *history.Sample, kept int64) bool) {
	for key, name := range s.H.Keys {
		if s.H.Limit(int32(key)) <= 0 {
			continue
		}
		home := refs.None
		for node, samples := range s.Nodes {
			if slices.ContainsFunc(samples, func(i int32) bool { return s.H.Samples[i].Keys[name].Limit > 0 }) {
				if home != refs.None {
					home = refs.None
					break
				}
				home = int32(node)
			}
		}
		if home == refs.None {
			continue
		}
		for _, x := range refs.At(s.H.Samples, s.Nodes[home]) {
			if !visit(int32(key), x, int64(x.Keys[name].Permits)) {
				break
			}
		}
	}
}
