package evidence

import (
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// OfHistory makes a Run from a history without a run directory, which another program may have recorded. Missing lists
// the unknown facts about it, and has notes.
func OfHistory(name string, h *history.History, j checker.Judgement, notes []string) *Run {
	r := (&Run{File: name, Manifest: rundir.Manifest{Clients: h.Clients}, History: h, Judgement: j,
		Judged: j.Verdict != ""}).prepare()
	r.Missing = append([]string{"this report is of a history alone, without a run directory: which servers there were, " +
		"what they stored and which of them granted the lock is not known"}, notes...)
	switch {
	case len(r.Faults) > 0:
	case len(r.Notes) > 0:
		r.Missing = append(r.Missing, noEffectsKnown)
	default:
		r.Missing = append(r.Missing, noFaultsKnown)
	}
	return r
}

// What a history without the faults of chaos says about them.
const (
	noFaultsKnown  = "the history has no faults: whether any was injected, and when, is not known"
	noEffectsKnown = "the history has observations of a fault injector, but not which faults took effect, where and " +
		"until when"
)

// HistoryOnly reports whether the run is a history without a run directory.
func (r *Run) HistoryOnly() bool { return r.File != "" }

// Named replaces the numbers of clients that have names instead, escaped for the text they are in.
func (r *Run) Named(text string, escape func(string) string) string {
	h := history.History{ProcessNames: make([]string, len(r.History.ProcessNames))}
	for i, name := range r.History.ProcessNames {
		h.ProcessNames[i] = escape(name)
	}
	return h.NameProcesses(text)
}
