package keeping

import (
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/history"
)

// This file finds the grants that servers no longer had, see lost_grants.go.

// nodeHold is one server's record of a hold by the end of an interval: its last samples as a master.
type nodeHold struct {
	had      bool            // at some time
	last     *history.Sample // its last sample; nil: there is none
	gone     *history.Sample // the first one since which it has not had the hold; nil: it has it
	promoted time.Duration   // when it last became master; below 0: it always was
	away     bool            // it is no master at the end, or does not reply: it may still have the hold
}

// lossSearch looks for grants that servers no longer had.
type lossSearch struct {
	*servers.NodeSamples
	promoted map[string][]time.Duration // by node: when it became master
}

// lostGrants are the holds that servers no longer had when their owners stopped relying on them, or when the promises
// ended: if several servers decide, more than may be down, or all that ever had it; else the masters of the key.
func lostGrants(s *servers.NodeSamples, o given.Options) (all []claims.LostGrant) {
	search := lossSearch{NodeSamples: s, promoted: make(map[string][]time.Duration)}
	for _, f := range refs.All(s.H.Faults) {
		if f.Name == history.NodePromoted {
			search.promoted[f.Target] = append(search.promoted[f.Target], f.Time)
		}
	}
	for i, h := range refs.All(s.Holds) {
		if s.H.Limit(h.Key) != 0 {
			continue
		}
		l := claims.LostGrant{Hold: i, Until: h.LastPromise()}
		if x := search.lost(h, min(h.Until, l.Until), o); x != nil {
			l.Seen, l.Node = x.Time, x.Node
			all = append(all, l)
		}
	}
	return all
}

// lost is the sample that shows that a hold was lost by end; nil: it was not.
func (s *lossSearch) lost(h *ledger.Hold, end time.Duration, o given.Options) *history.Sample {
	var all []nodeHold
	for node := range s.Nodes {
		if n := s.holdAt(node, h, end); n.last != nil {
			all = append(all, n)
		}
	}
	if o.MayBeDown > 0 {
		return lostByQuorum(all, o.MayBeDown)
	}
	return lostByMaster(all)
}

// holdAt is a server's record of a hold by end. last is nil if it has never stored the key of the hold.
func (s *lossSearch) holdAt(node int, h *ledger.Hold, end time.Duration) (n nodeHold) {
	home := s.Named[servers.NodeKey{Node: int32(node), Key: h.Key}] != nil
	for i, x := range refs.At(s.H.Samples, s.Between(node, h.From, end)) {
		is, _ := s.PresenceOf(i, h.Owner, h.Key)
		home, n.had = home || is == servers.Unnamed, n.had || is != servers.Absent
		switch {
		case is != servers.Absent:
			n.gone = nil
		case n.gone == nil:
			n.gone = x
		}
		n.last = x
	}
	if n.last == nil || !home {
		return nodeHold{}
	}
	others := s.Others[node]
	at := sort.Search(len(others), func(i int) bool { return s.H.Samples[others[i]].Sent >= n.last.Time })
	n.away = at < len(others) && s.H.Samples[others[at]].Time < end
	n.promoted = -1
	for _, t := range s.promoted[n.last.Node] {
		if t < end {
			n.promoted = t
		}
	}
	return n
}

// lostByMaster is the sample that shows that no master of the key has the hold; nil: one may have it. A promoted master
// replaces earlier ones, which may not know that yet. A master that never had the hold counts only if it was promoted,
// and each has to be sampled after the loss.
func lostByMaster(all []nodeHold) (at *history.Sample) {
	newest := time.Duration(-1)
	for _, n := range all {
		if !n.away {
			newest = max(newest, n.promoted)
		}
	}
	for _, n := range all {
		switch {
		case n.away || n.promoted < newest || !n.had && n.promoted < 0:
		case n.gone == nil:
			return nil
		case at == nil || n.gone.Time > at.Time:
			at = n.gone
		}
	}
	if at == nil {
		return nil
	}
	for _, n := range all {
		if n.gone != at && !n.away && n.promoted >= newest && n.last.Sent < at.Time {
			return nil
		}
	}
	return at
}

// lostByQuorum is the sample that shows that too few servers have the hold for a majority, or none that had it; nil:
// enough may have it.
func lostByQuorum(all []nodeHold, mayBeDown int) (at *history.Sample) {
	without, kept := 0, 0
	for _, n := range all {
		switch {
		case n.had && (n.away || n.gone == nil):
			kept++
		case !n.away:
			without++
			if n.had && (at == nil || n.gone.Time > at.Time) {
				at = n.gone
			}
		}
	}
	if without > mayBeDown || kept == 0 {
		return at
	}
	return nil
}

// lostPermits finds the holds of permits that servers no longer had. Samples do not show whose permits they keep: any
// of several holds at once may be the lost one.
func lostPermits(c *claims.Check, s *servers.NodeSamples) (all []claims.LostGrant) {
	fewer := make(map[int32]claims.LostGrant) // by hold: since when its server has kept too few permits
	key, next, open := refs.None, 0, []int32(nil)
	s.PermitSamples(func(k int32, x *history.Sample, kept int64) bool {
		if k != key {
			key, next, open = k, 0, nil
		}
		for holds := c.ByKey[k]; next < len(holds) && c.Holds[holds[next]].From <= x.Sent; next++ {
			open = append(open, holds[next])
		}
		open = slices.DeleteFunc(open, func(i int32) bool {
			return c.Holds[i].Until < x.Time || !c.Holds[i].PromisedAt(segment.Later(x.Time, ledger.KeepError(0, c.O)))
		})
		sum := int64(0)
		for _, i := range open {
			sum += c.OutAt(i, x.Time)
		}
		for _, i := range open {
			if _, known := fewer[i]; sum <= kept {
				delete(fewer, i)
			} else if !known {
				fewer[i] = claims.LostGrant{Hold: i, Seen: x.Time, Until: c.Holds[i].LastPromise(), Node: x.Node}
			}
		}
		return true
	})
	for _, l := range fewer { // in any order: they are sorted
		all = append(all, l)
	}
	return all
}
