package checker

import (
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// This file is about what the servers kept, as the witness has seen it. A sample is of some instant between Sent and
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
	nodes  [][]int32                   // samples of one node that replied as a master, in the order of time
	others [][]int32                   // by the same index: its samples since the first of these in which it was no master
	owners map[string]int32            // index into History.Owners
	stored map[nodeKey]bool            // the node has stored the key for an owner, known or not
	named  map[nodeKey][]time.Duration // when the node has named an owner of the history at the key

	wrongHolds func() []wrongHold               // see [nodeSamples.findWrongHolds]
	ledgers    func() map[ownerKey]*ownerLedger // of the owners that samples name
	naming     func() map[nodeOwner][]int32     // see [nodeSamples.findNaming]
}

type nodeKey struct{ node, key int32 }

type nodeOwner struct {
	node int32
	at   ownerKey
}

// readSamples reads the samples; nil if there are none that can be read.
func (v *view) readSamples(o Options) *nodeSamples {
	if len(v.h.Samples) == 0 || len(v.h.Keys) > maxWitnessed {
		return nil
	}
	s := &nodeSamples{view: v, owners: make(map[string]int32, len(v.h.Owners)), named: make(map[nodeKey][]time.Duration),
		stored: make(map[nodeKey]bool)}
	s.wrongHolds = sync.OnceValue(func() []wrongHold { return s.findWrongHolds(o) })
	s.ledgers, s.naming = sync.OnceValue(s.newLedgers), sync.OnceValue(s.findNaming)
	for i, name := range v.h.Owners {
		s.owners[name] = int32(i)
	}
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

// readKept reads samples, also those of a foreign lock, as values that come and go.
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
		for key, name := range s.h.Keys {
			state, held := x.Keys[name]
			if !held {
				continue
			}
			at := nodeKey{int32(n), int32(key)}
			if s.stored[at] = true; s.names(state) {
				s.named[at] = append(s.named[at], x.Time)
			}
		}
	}
}

// findNaming finds the samples of each node that name an owner at a key, by their places in nodes.
func (s *nodeSamples) findNaming() map[nodeOwner][]int32 {
	naming := make(map[nodeOwner][]int32)
	for node, samples := range s.nodes {
		for place, i := range samples {
			for key, name := range s.h.Keys {
				state, held := s.h.Samples[i].Keys[name]
				if !held {
					continue
				}
				add := func(name string) {
					owner, known := s.owners[name]
					at := nodeOwner{int32(node), ownerKey{owner, int32(key)}}
					if list := naming[at]; known && (len(list) == 0 || list[len(list)-1] != int32(place)) {
						naming[at] = append(list, int32(place))
					}
				}
				add(state.Owner)
				for _, name := range state.Owners {
					add(name)
				}
			}
		}
	}
	return naming
}

// namedIn are the samples of a node that name an owner at a key and were sent at or after from, by their places in
// nodes.
func (s *nodeSamples) namedIn(node int, at ownerKey, from time.Duration) []int32 {
	all := s.naming()[nodeOwner{int32(node), at}]
	return all[sort.Search(len(all), func(n int) bool { return s.h.Samples[s.nodes[node][all[n]]].Sent >= from }):]
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

// names reports whether a state names an owner of the history.
func (s *nodeSamples) names(state history.KeyState) bool {
	if _, known := s.owners[state.Owner]; known {
		return true
	}
	return slices.ContainsFunc(state.Owners, func(name string) bool { _, known := s.owners[name]; return known })
}

// presence is whether a node keeps a hold of an owner.
type presence uint8

const (
	absent  presence = iota
	present          // its owner is named
	unnamed          // the key is held by an unknown holder
)

// presenceOf reports whether sample x has a hold of an owner at a key.
func (s *nodeSamples) presenceOf(x *history.Sample, owner, key int32) (presence, history.KeyState) {
	state, held := x.Keys[s.h.Keys[key]]
	if !held {
		return absent, state
	}
	name := s.h.Owners[owner]
	if state.Owner == name || slices.Contains(state.Owners, name) {
		return present, state
	}
	if s.names(state) {
		return absent, state
	}
	return unnamed, state
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
