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
	return fmt.Sprintf("%s: %s in %s: %s", whose, f.Name(), f.Scenarios[0], Plain(f.Sentence))
}

// Frequency says in how many runs a finding was seen.
func (f Finding) Frequency() string {
	if f.Of == f.Runs {
		return "in " + format.Count(f.Runs, "run")
	}
	return fmt.Sprintf("in %s of %s of the same scenarios", format.Number(f.Runs), format.Count(f.Of, "run"))
}

// Frequency says in how many runs a property held.
func (k Kept) Frequency() string {
	text := format.Count(k.Runs, "run")
	if k.Broken > 0 {
		text += fmt.Sprintf("; %d as any lock of this kind", k.Broken)
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

// Plain is a sentence of a report without its marks for names.
func Plain(s string) string { return format.Line(strings.ReplaceAll(s, "`", "")) }

// Line is n in one line.
func (n NotTested) Line() string {
	text := n.What + ": " + n.Why
	if n.Needs != "" {
		text += " (needs " + n.Needs + ")"
	}
	return text
}
