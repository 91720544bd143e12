package overlap

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Grant is the evidence of samples about the grant of a hold.
type Grant struct {
	Seen     []history.Sample // the first one of each node that shows the hold, in the order of time
	Node     string           // that granted it; empty: not known, or there are several
	Inferred bool             // no sample shows that Node granted it, but it was the only master then

	// Instead is a sample in which a server had the lock for the client Other when the client of the hold learned of its
	// grant, and had had it for too long to have recorded the hold. Nil: there is no such sample.
	Instead *history.Sample
	Other   int
}

// Grant is the grant of one of the two holds.
func (p *Pair) Grant(h *evidence.Hold) *Grant {
	if h == p.B {
		return &p.ByB
	}
	return &p.ByA
}

// grantOf reads the samples of an interval.
func (p *Pair) grantOf(h *evidence.Hold, within evidence.Interval) (g Grant) {
	g.Seen = p.firstWith(h, within)
	g.Node = p.granter(g.Seen, h.From)
	switch {
	case p.R.Quorum() || g.Node != "":
		return g
	case !p.R.ByMajority():
		g.Node = p.changed(h)
	}
	if g.Node == "" {
		g.Node = p.onlyMaster(h)
		g.Inferred = g.Node != ""
	}
	if exclusive := h.Permits == 0 && !h.Reader; exclusive && len(g.Seen) == 0 {
		if g.Instead, g.Other = p.instead(h); g.Instead != nil {
			g.Node, g.Inferred = "", false
		}
	}
	return g
}

// shows reports whether a sample shows a hold, by the name of its owner or by the value that appeared with its grant.
func (p *Pair) shows(s *history.Sample, h *evidence.Hold) bool {
	if evidence.Has(s, p.Key, p.R.OwnerName(h.Owner)) {
		return true
	}
	return slices.ContainsFunc(p.R.Kept.Showing(h.Span), func(stay *kept.Stay) bool {
		if s.Node == stay.Node && stay.First.Time <= s.Time && s.Time <= stay.Last.Time {
			return true
		}
		appeared := stay.Before == nil || stay.Before.Time < s.Time
		return appeared && stay.Has(s.Keys[p.Key]) && p.R.Kept.Identifies(stay)
	})
}

// firstWith are the first samples in an interval of the nodes with a hold, in order of time. A hold that a node lost
// again before the grant does not count: an attempt that gets no majority returns its grants.
func (p *Pair) firstWith(h *evidence.Hold, within evidence.Interval) []history.Sample {
	var all []history.Sample
	for _, node := range p.R.Witness.Nodes {
		var first *history.Sample
		for s := range evidence.Each(p.R.Witness.During(node, within.From, within.Until)) {
			switch {
			case p.shows(s, h):
				first = cmp.Or(first, s)
			case s.Up && s.Time <= h.From:
				first = nil
			}
		}
		if first != nil {
			all = append(all, *first)
		}
	}
	slices.SortStableFunc(all, func(a, b history.Sample) int { return cmp.Compare(a.Time, b.Time) })
	return all
}

// granter is the node that granted a hold at t: the first one that was sampled as a master with it, and was not
// promoted after t. A replica may be sampled with it earlier. Empty means unknown.
func (p *Pair) granter(seen []history.Sample, t time.Duration) string {
	for s := range evidence.Each(seen) {
		if evidence.IsMaster(s) && p.R.Witness.Promotion(s.Node, t, s.Time) == nil {
			return s.Node
		}
	}
	return ""
}

// changed is the only master where the key changed as by a grant, between the last two samples before the reply and the
// first one after it: the key appeared, has another owner, more permits, or a longer lease, and its value is not known
// to be another hold's. It is used for locks whose value does not name the owner. Empty: none, or several.
func (p *Pair) changed(h *evidence.Hold) string {
	w := &p.R.Witness
	return w.Only(func(node string) bool {
		samples := w.During(node, h.From-w.Gap, h.From+w.Gap)
		after := sort.Search(len(samples), func(i int) bool { return samples[i].Time >= h.From })
		for i := max(after-1, 1); i <= min(after, len(samples)-1); i++ {
			if evidence.IsMaster(&samples[i]) && samples[i-1].Up && p.grantedBetween(&samples[i-1], &samples[i], h) {
				return true
			}
		}
		return false
	})
}

// grantedBetween reports whether, from one sample to the next, the key appeared or got another owner, more permits or a
// longer lease.
func (p *Pair) grantedBetween(before, after *history.Sample, h *evidence.Hold) bool {
	was, had := before.Keys[p.Key]
	is, has := after.Keys[p.Key]
	granted := !had || was.Owner != is.Owner || is.Permits > was.Permits || is.TTL > was.TTL
	return has && granted && !p.isOther(after, h)
}

// isOther reports whether the value of the key in a sample belongs to another hold.
func (p *Pair) isOther(s *history.Sample, h *evidence.Hold) bool {
	stay := p.R.Kept.At(s, h.Key)
	return p.R.Kept.Identifies(stay) && stay.Span != h.Span
}

// onlyMaster is the only node that can have granted a hold of which there is no sample: the only node of the run, or
// the only master then. Empty: there is none; or it had no record of the hold when its client had learned of the grant,
// or never has one of the lock.
func (p *Pair) onlyMaster(h *evidence.Hold) string {
	node := p.R.Witness.SoleMaster(h.From)
	if nodes := p.R.Manifest.Nodes; len(nodes) == 1 {
		node = nodes[0].Name
	}
	if node == "" || p.neverRecorded() || p.lacks(node, h) {
		return ""
	}
	return node
}

// neverRecorded reports whether servers were sampled, and none ever had a record of the lock: it may use other ones.
func (p *Pair) neverRecorded() bool {
	return p.R.Unsampled() == "" && !slices.ContainsFunc(p.R.Samples, func(s history.Sample) bool {
		k, has := s.Keys[p.Key]
		return has && k.Owner != history.ProbeOwner
	})
}

// lacks reports whether the first sample of a node after the reply to a grant shows that the lock is free, or that it
// is another hold's, and no fault explains that.
func (p *Pair) lacks(node string, h *evidence.Hold) bool {
	s := evidence.FirstOf(p.R.Witness.During(node, h.From, h.To), func(s *history.Sample) bool { return s.Sent >= h.From })
	if s == nil || !s.Up || slices.ContainsFunc(p.R.Faults, func(f evidence.Fault) bool {
		hits := f.On(node) || p.R.ByMajority() && len(f.Nodes(p.R)) > 0
		return hits && f.Effective(h.Asked, s.Time)
	}) {
		return false
	}
	_, held := s.Keys[p.Key]
	return !held || p.isOther(s, h)
}

// instead is a sample from the time of a hold that shows the lock with another client, which had it before for longer
// than a reply takes, and that client. Every node has to have been sampled then, and the samples of the run have to
// show one owner at a time: a lock whose holders set the key although another one has it may have recorded the hold,
// and overwritten it before the next sample.
func (p *Pair) instead(h *evidence.Hold) (*history.Sample, int) {
	w := &p.R.Witness
	missed := func(node string) bool { return !w.Sampled(node, h.From, h.To) }
	if slices.ContainsFunc(w.Nodes, missed) || p.overwrites() {
		return nil, 0
	}
	usual := p.usualRelease()
	for _, s := range w.InOrder(h.From, h.To) {
		stay := p.R.Kept.At(s, h.Key)
		if !evidence.IsMaster(s) || !p.R.Kept.Identifies(stay) || stay.Client == h.Client {
			continue
		}
		since := stay.First.Time
		if other := p.R.HoldOf(stay.Span); other != nil && other.To >= h.From {
			since = min(since, other.From)
		}
		if since < h.From-usual && p.R.FaultIn(h, since, h.From) == nil { // nothing delayed the reply
			return s, stay.Client
		}
	}
	return nil, 0
}

// overwrites reports whether samples show that a hold of the lock replaced another one in force.
func (p *Pair) overwrites() bool {
	return slices.ContainsFunc(p.R.Kept.Replacing(), func(s *kept.Stay) bool {
		was := s.Replaced
		if s.Key != p.A.Key || !p.R.Kept.Identifies(s) || !p.R.Kept.Identifies(was) || s.Span == was.Span {
			return false
		}
		victim := p.R.HoldOf(was.Span)
		until := time.Duration(0)
		if victim != nil {
			until = victim.ValidAt(s.First.Time)
		}
		return victim != nil && victim.To > s.First.Time && (until == 0 || until > s.First.Time)
	})
}

// usualRelease is the time that nine of ten releases take at most, from the request to the reply: a request that does
// not wait for the lock. A single client that was kept from running says nothing about the others.
func (p *Pair) usualRelease() time.Duration {
	var all []time.Duration
	for s := range evidence.Each(p.R.History.Spans) {
		if s.Op == history.OpRelease && s.Outcome != history.Info {
			all = append(all, s.Return-s.Call)
		}
	}
	if len(all) == 0 {
		return history.Infinity
	}
	slices.Sort(all)
	return all[len(all)*9/10]
}

// OthersAsked is when the acquires of the other clients than that one had been sent.
func (p *Pair) OthersAsked(client int) time.Duration {
	switch client {
	case p.A.Client:
		return p.B.Asked
	case p.B.Client:
		return p.A.Asked
	}
	return max(p.A.Asked, p.B.Asked)
}
