package keeping

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// unkeptPromise is a promise that servers did not keep.
type unkeptPromise struct {
	claims.ReceivedPromise
	seen time.Duration // when the deciding sample was taken
	node string        // whose sample it is
	keep time.Duration // until when that node kept the hold at most; 0: it did not have it
}

// JudgeKeptPromises compares every promise with the servers' data: while it is in force, and its owner has not given it
// up, each server that granted it has the hold, with a lease that does not end before the promise. Of a quorum this is
// so for a majority (Options.MayBeDown servers may differ). A fault that may change the servers' data excuses the lock
// from the request of the promise on: a hold that is renewed after the fault was still there.
func JudgeKeptPromises(c *claims.Check) {
	seen := c.Samples()
	if seen == nil {
		return
	}
	for i, h := range refs.All(c.Holds) {
		if c.H.Limit(h.Key) != 0 {
			continue
		}
		var levels claims.LevelPromises
		list := c.Promises().Of(h)
		for n, p := range list {
			levels.Apply(p)
			longest := levels.Longest()
			next := min(h.Until, longest.Until)
			if n+1 < len(list) {
				next = min(next, list[n+1].At)
			}
			longest.At = p.At
			u, broken := breaksPromise(seen, h, longest, next, c.O)
			if !broken || c.O.Applies(claims.HonestData) && changed(c.All, h, longest, u.seen) {
				continue
			}
			f := finding.Finding{Rule: claims.NotKept, X: i, Y: h.Span, Start: u.seen, End: min(h.Until, u.Until), Note: u}
			if u.keep > 0 {
				f.Rule, f.Start, f.End = claims.KeptShorter, u.keep, u.Until
			}
			c.Found.Add(f)
			break
		}
	}
}

// changed reports whether a fault may have changed the servers' record of a promise. The time of the request of a
// notice is known only if nothing delays it.
func changed(d excuse.Disturbances, h *ledger.Hold, p claims.ReceivedPromise, seen time.Duration) bool {
	since := p.Asked
	at := segment.Of(p.Asked, p.Asked)
	if p.Span == refs.None && d.MayAffect(at, excuse.AnyClient, history.AffectsTraffic, history.AffectsClients) {
		since = h.Asked
	}
	return d.MayAffect(segment.Of(since, seen), excuse.AnyClient, history.AffectsData)
}

// breaksPromise reports whether more servers than may be down do not keep a promise between its instant and another
// one.
func breaksPromise(s *servers.NodeSamples,
	h *ledger.Hold, p claims.ReceivedPromise, until time.Duration, o given.Options,
) (u unkeptPromise, broken bool) {
	var all []unkeptPromise
	for node := range s.Nodes {
		u, fails, keeps := breaksPromiseAt(s, node, h, p, until, o)
		switch {
		case fails:
			all = append(all, u)
		case keeps && o.MayBeDown == 0: // of two masters, the master with the hold decides
			return unkeptPromise{}, false
		}
	}
	if len(all) <= o.MayBeDown {
		return unkeptPromise{}, false
	}
	slices.SortStableFunc(all, func(a, b unkeptPromise) int { return cmp.Compare(a.seen, b.seen) })
	return all[o.MayBeDown], true
}

// breaksPromiseAt reports whether a node does not keep a promise, and whether it has the hold. A node that was not seen
// to grant it may have it, but does not break the promise.
func breaksPromiseAt(s *servers.NodeSamples,
	node int, h *ledger.Hold, p claims.ReceivedPromise, until time.Duration, o given.Options,
) (u unkeptPromise, fails, keeps bool) {
	named := s.Named[servers.NodeKey{Node: int32(node), Key: h.Key}] != nil
	home := named
	for _, i := range s.Between(node, h.Asked, p.At) { // samples without names show that a held key became free
		is, _ := s.PresenceOf(i, h.Owner, h.Key)
		home = home || is == servers.Unnamed
	}
	for i, x := range refs.At(s.H.Samples, s.Between(node, p.At, until)) {
		is, rest := s.PresenceOf(i, h.Owner, h.Key)
		u = unkeptPromise{ReceivedPromise: p, seen: x.Time, node: x.Node}
		if is == servers.Absent && o.MayBeDown == 0 &&
			(s.MovedFrom(node, h.Key, x.Time) || !keeps && unseenMaster(s, node, h.Key, p.At, x.Time) || !named &&
				s.HeldElsewhere(node, h.Key, x.Time, o.Slack())) {
			continue
		}
		if is == servers.Absent {
			return u, home, false
		}
		keeps = true
		if u.keep = segment.Later(x.Time, rest); rest >= 0 && u.keep+ledger.KeepError(p.Until-x.Time, o) < p.Until {
			return u, home, home
		}
	}
	return u, false, keeps
}

// unseenMaster reports whether another node that has named an owner at a key was a master when it was last sampled
// before at, which was before from: of two masters, this one may have granted the lock after that.
func unseenMaster(s *servers.NodeSamples, node int, key int32, from, at time.Duration) bool {
	for other, all := range s.Nodes {
		n := sort.Search(len(all), func(n int) bool { return s.H.Samples[all[n]].Time > at })
		if other == node || n == 0 || s.H.Samples[all[n-1]].Time >= from ||
			s.Named[servers.NodeKey{Node: int32(other), Key: key}] == nil {
			continue
		}
		last := int(all[n-1])
		since := s.H.Samples[last+1:]
		if !slices.ContainsFunc(since[:sort.Search(len(since), func(n int) bool { return since[n].Time > at })],
			func(x history.Sample) bool { return x.Node == s.H.Samples[last].Node }) {
			return true
		}
	}
	return false
}

func UnkeptPromiseViolation(c *claims.Check, f finding.Finding) property.Violation {
	h, u := &c.Holds[f.X], f.Note.(unkeptPromise)
	w := finding.Involving(c.View, property.BrokenPromise, h.Span)
	first := c.H.Spans[h.Span].Invoked
	if u.Event != c.H.Spans[h.Span].Ended {
		first = c.H.Spans[h.Span].Ended
	}
	w.Events = []int{int(first), int(u.Event)}
	w.Rule = "servers keep a hold for as long as the lock promises"
	w.Text = fmt.Sprintf("client %d was promised %s until %s, but at %s %s did not have it for that owner", w.Clients[0],
		finding.LockName(w.Key), format.Instant(u.Until), format.Instant(u.seen), u.node)
	if u.keep > 0 {
		w.Text = fmt.Sprintf("client %d was promised %s until %s, but %s kept it until %s", w.Clients[0],
			finding.LockName(w.Key),
			format.Instant(u.Until), u.node, format.Instant(u.keep))
	}
	return w
}
