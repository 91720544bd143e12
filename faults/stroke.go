package faults

import (
	"context"
	"sync"

	"github.com/lockchaos/lockchaos/cluster"
)

// stroke is a fault that is one command of an operator, and is tried until it
// has done something: there may be nothing to break yet. There is nothing to heal.
type stroke struct {
	node string
	do   func(ctx context.Context) (proof string, done bool, err error)

	mu    sync.Mutex
	proof string // of the first time that it did something; "": it has not yet
	ended bool
}

func (s *stroke) Bite(ctx context.Context) (string, error) {
	return await(ctx, "anything at "+s.node+" to break", func() (string, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.proof == "" && !s.ended {
			if proof, done, err := s.do(ctx); err == nil && done {
				s.proof = proof
			}
		}
		return s.proof, s.proof != ""
	})
}

// Heal keeps it from being done later.
func (s *stroke) Heal(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return "nothing to undo", nil
}

func unableToCommand(c cluster.Cluster) string { return can[cluster.Admin](c, "command a server") }
