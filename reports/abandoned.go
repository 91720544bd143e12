package reports

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// abandonedAt is a hold whose client crashed, at a node.
type abandonedAt struct {
	node string
	hold int
}

// abandoned is the last hold of a key before a sample, if its client crashed and the node has had the same value since:
// a key without the name of its owner is that of the dead client, and not of one that still waits. nil if it is not.
func (r *Run) abandoned(key string, s *history.Sample) *hold {
	n := sort.Search(len(r.holds), func(i int) bool { return r.holds[i].From > s.Time })
	for i := n - 1; i >= max(n-64, 0); i-- {
		h := &r.holds[i]
		if r.keyName(h.Key) != key {
			continue
		}
		if h.End != checker.Crashed || h.to >= s.Sent || s.Time > r.keptAfterCrash[abandonedAt{s.Node, i}] {
			return nil
		}
		return h
	}
	return nil
}

// indexAbandoned finds, for each hold whose client crashed and each node, the last sample after the grant up to which
// the value of the key did not change.
func (r *Run) indexAbandoned() {
	r.keptAfterCrash = map[abandonedAt]time.Duration{}
	for i := range r.holds {
		h := &r.holds[i]
		if h.End != checker.Crashed {
			continue
		}
		for _, node := range r.witness.nodes {
			value, key := "", r.keyName(h.Key)
			samples := r.witness.during(node, h.From, r.History.End)
			for k := range samples {
				state, held := samples[k].Keys[key]
				if !held || k > 0 && state.Owner != value {
					break
				}
				value = state.Owner
				r.keptAfterCrash[abandonedAt{node, i}] = samples[k].Time
			}
		}
	}
}

// unansweredAt is who holds a key without the name of its owner, of which the last known hold had ended: the client
// that asked for it after that, when the node did not have the key, and got no answer. False if there is none.
func (r *Run) unansweredAt(key string, s *history.Sample, last *hold) (x keyHolder, is bool) {
	client := -1
	for _, asked := range r.unanswered {
		if asked.Call > s.Time {
			break
		}
		if asked.Call < last.to || r.keyName(asked.Key) != key {
			continue
		}
		before := lastOf(r.witness.during(s.Node, last.to, asked.Call), func(*history.Sample) bool { return true })
		if before == nil || !before.Up {
			continue
		}
		if _, held := before.Keys[key]; held {
			continue
		}
		c := r.clientIn(asked.Process)
		if is && c != client {
			return unknownHolder(), true
		}
		client, is = c, true
	}
	return named(client, s.Keys[key].Mode, false), is
}
