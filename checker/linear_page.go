package checker

import (
	"errors"
	"fmt"
	"io"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/linear"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
)

// ErrNothingToShow is returned for a history without lock operations.
var ErrNothingToShow = errors.New("the history has no lock operations to show")

// WriteLinearization writes porcupine's page about the key of the worst violation in j, or else the first key: all of
// its operations if they are few, else the ones around the violation. Faults and reported losses are annotations. The
// page needs no network.
func WriteLinearization(w io.Writer, h *history.History, j Judgement) error {
	v, err := safeView(h, given.Options{Options: j.HoldOptions()})
	if err != nil {
		return fmt.Errorf("drawing the linearization: %w", err)
	}
	drawn, err := linear.WritePage(v, w, j.worstOrdering())
	switch {
	case err != nil:
		return fmt.Errorf("drawing the linearization: %w", err)
	case !drawn:
		return ErrNothingToShow
	}
	return nil
}

// worstOrdering is the worst violation that is about the order of operations.
func (j *Judgement) worstOrdering() *property.Violation {
	for _, p := range []property.Name{property.Linearizable, property.Exclusion, property.LeaseExclusion, property.Fencing,
		property.Damage} {
		if r := j.Result(p); r != nil && len(r.Violations) > 0 {
			return &r.Violations[0]
		}
	}
	return nil
}
