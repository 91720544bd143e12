package tally

import (
	"fmt"
	"path"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/cause"
)

// ID is the cause of a finding, or the property if the cause is not known.
func (f Finding) ID() string {
	if cause.Known(f.Cause) {
		return f.Cause
	}
	return string(f.Property)
}

// Name is the ID of a finding with its class.
func (f Finding) Name() string {
	if f.Class != "" {
		return f.ID() + " (" + string(f.Class) + ")"
	}
	return f.ID()
}

// Line is the finding in one line, for people.
func (f Finding) Line() string {
	whose := "expected of any lock of this kind"
	if f.Own {
		whose = "finding"
	}
	return fmt.Sprintf("%s: %s in %s: %s", whose, f.Name(), f.Scenario, Plain(f.Sentence))
}

// Frequency says in how many runs of its scenario, and of the others, a finding was seen.
func (f Finding) Frequency() string {
	first := f.Seen[0]
	others := fmt.Sprintf(", and in %s of the %s others", format.Number(f.Runs-first.Runs), format.Number(f.Of-first.Of))
	if f.Of == first.Of {
		others = ""
	}
	return "in " + first.String() + others
}

// String says in how many runs of a scenario a finding was seen.
func (s Seen) String() string {
	switch {
	case s.Of == 1 && s.Scenario == Generated:
		return "the run of a generated scenario"
	case s.Of == 1:
		return "the run of " + s.Scenario
	}
	return fmt.Sprintf("%s of %s of %s", format.Number(s.Runs), format.Count(s.Of, "run"), s.Scenario)
}

// Frequency says in how many runs a property held.
func (h Held) Frequency() string {
	text := format.Count(h.Runs, "run")
	if h.Violated > 0 {
		text += fmt.Sprintf(" (violated in %d, as by any lock of this kind)", h.Violated)
	}
	return text
}

// Report is the path of the report of the run that is kept; "": none is.
func (f Finding) Report() string {
	if f.Run == "" {
		return ""
	}
	return path.Join(f.Run, rundir.ReportFile)
}

// Change is the best change that prevents a finding, for people; "": none is known.
func (f Finding) Change() string {
	if len(f.Advice) == 0 || f.Advice[0].Measured {
		return ""
	}
	return Plain(f.Advice[0].Text)
}

// Plain is a sentence of a report without its marks for names.
func Plain(s string) string { return format.Line(strings.ReplaceAll(s, "`", "")) }

// Line is n in one line.
func (n NotTested) Line() string {
	text := n.Subject + ": " + n.Why
	if n.Needs != "" {
		text += " (needs " + n.Needs + ")"
	}
	return text
}
