package servers

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// Granted reports whether an operation gave its owner a hold, or a new lease of one.
func Granted(s *history.Span) bool {
	return s.Outcome == history.OK && s.Op != history.OpRelease && s.Op != history.OpForceRelease
}

// HeldElsewhere reports whether another node has a hold of a key within slack of t: a slot that migrates takes its keys
// along.
func (s *NodeSamples) HeldElsewhere(node int, key int32, t, slack time.Duration) bool {
	for other := range s.Nodes {
		if other == node {
			continue
		}
		for _, i := range s.Between(other, t-slack, segment.Later(t, slack)) {
			if _, held := s.ValueAt(i, key); held {
				return true
			}
		}
	}
	return false
}
