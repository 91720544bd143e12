package evidence

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
func (r *Run) abandoned(key string, s *history.Sample) *Hold {
	n := sort.Search(len(r.Holds), func(i int) bool { return r.Holds[i].From > s.Time })
	for i := n - 1; i >= max(n-64, 0); i-- {
		h := &r.Holds[i]
		if r.KeyName(h.Key) != key {
			continue
		}
		if h.End != checker.Crashed || h.To >= s.Sent || s.Time > r.keptAfterCrash[abandonedAt{s.Node, i}] {
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
	for i := range r.Holds {
		h := &r.Holds[i]
		if h.End != checker.Crashed {
			continue
		}
		for _, node := range r.Witness.Nodes {
			value, key := "", r.KeyName(h.Key)
			samples := r.Witness.During(node, h.From, r.History.End)
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
func (r *Run) unansweredAt(key string, s *history.Sample, last *Hold) (x KeyHolder, is bool) {
	client := -1
	for _, asked := range r.Unanswered {
		if asked.Call > s.Time {
			break
		}
		if asked.Call < last.To || r.KeyName(asked.Key) != key {
			continue
		}
		before := LastOf(r.Witness.During(s.Node, last.To, asked.Call), func(*history.Sample) bool { return true })
		if before == nil || !before.Up {
			continue
		}
		if _, held := before.Keys[key]; held {
			continue
		}
		c := r.ClientIn(asked.Process)
		if is && c != client {
			return unknownHolder(), true
		}
		client, is = c, true
	}
	return named(client, s.Keys[key].Mode, false), is
}
