package servers

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

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
