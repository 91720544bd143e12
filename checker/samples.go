package checker

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// This file is about the servers' data, as the witness has seen them. A sample is of some instant between Sent and
// Time. Only masters are read: a replica may be behind.

// maxWitnessed is up to how many keys a history may have for samples to be read. With more, a sample leaves out keys
// that clients have not used lately, so that a key that is absent need not be free.
const maxWitnessed = 64

// keepError is by how much the rest of a lease at a server may differ from the true one: replies are in milliseconds,
// and its clock may run slower than the harness's by 1/1000 (twice the 500 ppm by which NTP may slow a clock).
func keepError(rest time.Duration, o Options) time.Duration {
	return 5*time.Millisecond + rest/1000 + o.ClockError
}

// nodeSamples are the samples of a history by node.
type nodeSamples struct {
	*view
	kept    []keptKey // see valuesIn
	first   []int32   // by sample: its first place in kept
	nodes   [][]int32 // samples of one node that replied as a master, in the order of time
	others  [][]int32 // by the same index: its samples since the first of these in which it was no master
	values  *kept.Values
	stored  map[nodeKey]bool            // the node has stored the key for an owner, known or not
	named   map[nodeKey][]time.Duration // when the node has named an owner of the history at the key
	permits map[int32]bool              // the key is a semaphore's

	wrongHolds func() []wrongHold // see [nodeSamples.findWrongHolds]
	ledgers    func() *ownerLedgers
	naming     func() []naming // see [nodeSamples.findNaming]
}

// keptKey is a key that a sample has.
type keptKey struct {
	key, owner int32         // index into History.Owners; none: it names no single owner of the history
	names      bool          // it names one at least
	shared     bool          // it has a list of owners
	rest       time.Duration // of the lease; negative: no expiry
	count      int32         // of a lock without modes; 0: not known
}

type nodeKey struct{ node, key int32 }

// naming is a sample that names an owner, by its place in nodes.
type naming struct{ owner, key, node, place int32 }

// compare orders by owner, key, node and place.
func (n naming) compare(m naming) int {
	return cmp.Or(cmp.Compare(n.owner, m.owner), cmp.Compare(n.key, m.key), cmp.Compare(n.node, m.node),
		cmp.Compare(n.place, m.place))
}

// readSamples reads the samples; nil if there are none that can be read.
func (v *view) readSamples(o Options) *nodeSamples {
	if len(v.h.Samples) == 0 || v.kept() == nil {
		return nil
	}
	s := &nodeSamples{view: v, first: make([]int32, len(v.h.Samples)+1), values: v.kept(),
		kept: make([]keptKey, 0, len(v.h.Samples)), named: make(map[nodeKey][]time.Duration), stored: make(map[nodeKey]bool),
		permits: make(map[int32]bool)}
	s.wrongHolds = sync.OnceValue(func() []wrongHold { return s.findWrongHolds(o) })
	s.ledgers, s.naming = sync.OnceValue(s.newLedgers), sync.OnceValue(s.findNaming)
	s.read()
	return s
}

// readable is h without the samples of a foreign lock.
func (o Options) readable(h *history.History) *history.History {
	if !o.ForeignLock || h.Samples == nil {
		return h
	}
	c := *h
	c.Samples = nil
	return &c
}

// readKept reads samples, also of a foreign lock, as values that come and go.
func (v *view) readKept(samples []history.Sample) *kept.Values {
	if len(samples) == 0 || len(v.h.Keys) > maxWitnessed {
		return nil
	}
	return kept.Find(v.h, samples)
}

// readRecords reads the samples as far as they show which servers store any hold of a key, which they do without
// knowledge of how a lock stores its holds; nil if there are none that can be read.
func (v *view) readRecords(o Options) *nodeSamples {
	if !o.ForeignLock {
		return v.samples()
	}
	w, h := *v, *v.h
	h.Samples, w.h = o.values, &h
	return w.readSamples(o)
}

func (s *nodeSamples) read() {
	index := make(map[string]int)
	for i, x := range refs(s.h.Samples) {
		n, known := index[x.Node]
		s.keep(x)
		s.first[i+1] = int32(len(s.kept))
		if !x.Up || x.Role != "master" {
			if known {
				s.others[n] = append(s.others[n], i)
			}
			continue
		}
		if !known {
			n = len(s.nodes)
			index[x.Node] = n
			s.nodes, s.others = append(s.nodes, nil), append(s.others, nil)
		}
		s.nodes[n] = append(s.nodes[n], i)
		for _, k := range s.valuesIn(i) {
			at := nodeKey{int32(n), k.key}
			if s.stored[at] = true; k.names {
				s.named[at] = append(s.named[at], x.Time)
			}
		}
	}
}

// keep adds the values that a sample has of the keys of the history.
func (s *nodeSamples) keep(x *history.Sample) {
	if len(x.Keys) == 0 {
		return
	}
	for key, name := range s.h.Keys {
		state, held := x.Keys[name]
		if !held {
			continue
		}
		k := keptKey{key: int32(key), owner: none, shared: len(state.Owners) > 0, rest: state.TTL}
		if state.Limit > 0 {
			s.permits[k.key] = true
		}
		if state.Mode == "" {
			k.count = int32(state.Count)
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
func (s *nodeSamples) valuesIn(i int32) []keptKey { return s.kept[s.first[i]:s.first[i+1]] }

// valueAt is the value of sample i at a key.
func (s *nodeSamples) valueAt(i, key int32) (k keptKey, held bool) {
	for _, k := range s.valuesIn(i) {
		if k.key == key {
			return k, true
		}
	}
	return k, false
}

// findNaming finds the samples that name an owner at a key, sorted by [naming.compare].
func (s *nodeSamples) findNaming() (all []naming) {
	for node, samples := range s.nodes {
		for place, i := range samples {
			for _, k := range s.valuesIn(i) {
				at := naming{k.owner, k.key, int32(node), int32(place)}
				if at.owner != none {
					all = append(all, at)
				}
				if !k.shared {
					continue
				}
				for _, name := range s.h.Samples[i].Keys[s.h.Keys[k.key]].Owners {
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

// namedIn are the samples of a node that name an owner at a key and were sent at or after from.
func (s *nodeSamples) namedIn(node int, at ownerKey, from time.Duration) []naming {
	all := s.naming()
	samples := s.nodes[node]
	place := sort.Search(len(samples), func(n int) bool { return s.h.Samples[samples[n]].Sent >= from })
	first, _ := slices.BinarySearchFunc(all, naming{at.owner, at.key, int32(node), int32(place)}, naming.compare)
	end, _ := slices.BinarySearchFunc(all, naming{at.owner, at.key, int32(node) + 1, 0}, naming.compare)
	return all[first:end]
}

// movedFrom reports whether the last node that has named an owner at a key up to an instant is another one, or may be
// because no sample of a node names one before that: the slot of the key has moved, or has not moved yet.
func (s *nodeSamples) movedFrom(node int, key int32, at time.Duration) bool {
	last := func(node int) time.Duration {
		times := s.named[nodeKey{int32(node), key}]
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
	for other := range s.nodes {
		later := own < 0 && s.named[nodeKey{int32(other), key}] != nil
		if other != node && (last(other) > own || later) {
			return true
		}
	}
	return false
}

// presence is whether a node keeps a hold of an owner.
type presence uint8

const (
	absent  presence = iota
	present          // its owner is named
	unnamed          // the key is held by an unknown holder
)

// presenceOf reports whether sample i has a hold of an owner at a key, and the rest of the lease that it keeps there.
func (s *nodeSamples) presenceOf(i, owner, key int32) (is presence, rest time.Duration) {
	k, held := s.valueAt(i, key)
	switch {
	case !held:
		return absent, 0
	case k.owner == owner:
		return present, k.rest
	case k.shared && slices.Contains(s.h.Samples[i].Keys[s.h.Keys[key]].Owners, s.h.Owners[owner]):
		return present, k.rest
	case k.names:
		return absent, k.rest
	}
	return unnamed, k.rest
}

// otherMaster reports whether another node acted as master for a key within slack of t. Then it is not known whose
// state counts: after a failover the old master may not know for a while that it was replaced.
func (s *nodeSamples) otherMaster(node int, key int32, t, slack time.Duration) bool {
	for other := range s.nodes {
		named := other != node && s.named[nodeKey{int32(other), key}] != nil
		if named && len(s.between(other, t-slack, later(t, slack))) > 0 {
			return true
		}
	}
	return false
}

// between are the samples of a node that were taken entirely between two instants.
func (s *nodeSamples) between(node int, from, until time.Duration) []int32 {
	all := s.nodes[node]
	first := sort.Search(len(all), func(n int) bool { return s.h.Samples[all[n]].Sent >= from })
	last := sort.Search(len(all), func(n int) bool { return s.h.Samples[all[n]].Time >= until })
	return all[first:max(first, last)]
}
