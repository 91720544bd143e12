package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockchaos/lockchaos/internal/rundir"
)

// untilDone is the duration of the scenario of a run that ends before: see runUntil.
const untilDone = "duration=5m"

// runUntil interrupts a run as soon as its history is as the test wants it, however long that takes.
func runUntil(t *testing.T, o Options, done func(history string) bool) *Outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	path := filepath.Join(o.Out, rundir.Latest, rundir.HistoryFile)
	o.Watch = func(s Status) {
		if text, err := os.ReadFile(path); s.Phase == "run" && err == nil && done(string(text)) {
			cancel()
		}
	}
	out, err := Run(ctx, o)
	if !errors.Is(err, ErrInterrupted) {
		t.Fatalf("the run ended before it was as wanted: %v", err)
	}
	return out
}
