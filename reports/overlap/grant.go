package overlap

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// firstWith are the first samples in an interval of the nodes with owner in key, in order of time. What a node had and
// lost again before the grant is not part of it: an attempt that gets no majority gives back what it was granted.
func firstWith(r *evidence.Run, key, owner string, within evidence.Interval, granted time.Duration) []history.Sample {
	var all []history.Sample
	for _, node := range r.Witness.Nodes {
		var first *history.Sample
		for s := range evidence.Each(r.Witness.During(node, within.From, within.Until)) {
			switch {
			case evidence.Has(s, key, owner):
				first = cmp.Or(first, s)
			case s.Up && s.Time <= granted:
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

// granter is the node that granted a hold at t: the first one that was sampled as a
// master with its owner, and was not promoted after t. A replica may be sampled
// with it earlier. Empty means unknown.
func granter(r *evidence.Run, all []history.Sample, t time.Duration) string {
	for s := range evidence.Each(all) {
		if evidence.IsMaster(s) && r.Witness.Promotion(s.Node, t, s.Time) == nil {
			return s.Node
		}
	}
	return ""
}

// changed is the only master whose key changed as a grant at t changes it, between the last two samples before t and
// the first one after it: the key appeared, has another owner, or more permits. It is for locks whose value does not
// name the owner. Empty: none, or several.
func changed(r *evidence.Run, key string, t time.Duration) string {
	return r.Witness.Only(func(node string) bool {
		samples := r.Witness.During(node, t-r.Witness.Gap, t+r.Witness.Gap)
		after := sort.Search(len(samples), func(i int) bool { return samples[i].Time >= t })
		for i := max(after-1, 1); i <= min(after, len(samples)-1); i++ {
			if evidence.IsMaster(&samples[i]) && samples[i-1].Up && grantedBetween(&samples[i-1], &samples[i], key) {
				return true
			}
		}
		return false
	})
}

// grantedBetween reports whether the key appeared, has another owner or more permits in the later of two samples.
func grantedBetween(before, after *history.Sample, key string) bool {
	was, had := before.Keys[key]
	is, has := after.Keys[key]
	return has && (!had || was.Owner != is.Owner || is.Permits > was.Permits)
}
