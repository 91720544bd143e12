package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// stroke is a fault that is one command of an operator, and is tried until it
// has done something: there may be nothing to break yet. There is nothing to heal.
type stroke struct {
	node string
	do   func(ctx context.Context) (proof string, done bool, err error)

	// turn is had by who does it or looks at what follows. It is no mutex: it is held while a
	// server is asked, and virtual time does not pass while somebody waits for a mutex.
	turn  chan struct{}
	proof string // of the first time that it did something; "": it has not yet
	ended bool
}

func newStroke(node string, do func(ctx context.Context) (string, bool, error)) *stroke {
	return &stroke{node: node, do: do, turn: make(chan struct{}, 1)}
}

func (s *stroke) Bite(ctx context.Context) (string, error) {
	return await(ctx, "anything at "+s.node+" to break", func() (string, bool) {
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		if s.proof == "" && !s.ended {
			if proof, done, err := s.do(ctx); err == nil && done {
				s.proof = proof
			}
		}
		return s.proof, s.proof != ""
	})
}

// Heal keeps it from being done later.
func (s *stroke) Heal(ctx context.Context) (string, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-s.turn }()
	s.ended = true
	return "nothing to undo", nil
}

func unableToCommand(c cluster.Cluster) string { return can[cluster.Admin](c, "command a server") }
