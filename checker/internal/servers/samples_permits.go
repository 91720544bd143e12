package servers

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/history"
)

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
