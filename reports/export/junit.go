package export

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/junit"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// JUnit writes a suite with one case, the scenario. It passes if every
// outcome is the expected one (see [expectations]), so that CI stays green while a
// lock that is known to be unsafe is unsafe. A run that the harness or the
// environment broke is an error.
func JUnit(r *evidence.Run, w io.Writer) error {
	m := &r.Manifest
	took := r.History.End
	if d := m.Finished.Sub(m.Started); !m.Started.IsZero() && d > 0 {
		took = d
	}
	c := junit.Case{
		Class: "lockchaos." + format.Printable(cmp.Or(m.Backend, "history")),
		Name:  format.Printable(r.Title()), Time: seconds(took), Out: junitOut(r),
	}
	switch {
	case r.Verdict() == checker.NotRun:
		c.Error = &junit.Message{Message: format.Printable("not run: " + r.Judgement.Sentence), Text: c.Out}
	case m.State == rundir.Broken:
		c.Error = &junit.Message{Message: format.Printable(evidence.StateText(m)), Text: c.Out}
	case !evidence.AsExpected(r):
		c.Failure = &junit.Message{Message: format.Printable(cmp.Or(unmet(r), "not judged")), Text: c.Out}
	}
	s := junit.Suite{Name: "lockchaos", Time: c.Time, Cases: []junit.Case{c}, Properties: junitProperties(m)}
	if !m.Started.IsZero() {
		s.Timestamp = m.Started.UTC().Format("2006-01-02T15:04:05")
	}
	return junit.Write(w, s)
}

// WriteJUnitError writes a suite for a run that could not be started: its case is an error, with the known facts.
func WriteJUnitError(w io.Writer, m *rundir.Manifest, err error) error {
	text := format.Printable("not run: " + err.Error())
	c := junit.Case{
		Class: "lockchaos." + format.Printable(cmp.Or(m.Backend, "unknown")), Name: format.Printable(m.Scenario),
		Time: seconds(0), Error: &junit.Message{Message: text, Text: text},
	}
	suite := junit.Suite{Name: "lockchaos", Time: seconds(0), Properties: junitProperties(m), Cases: []junit.Case{c}}
	return junit.Write(w, suite)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// junitProperties are the criteria for comparing runs: backend, seed, versions.
func junitProperties(m *rundir.Manifest) *junit.Properties {
	all := []junit.Property{{Name: "backend", Value: m.Backend}, {Name: "backend.reason", Value: m.Why},
		{Name: "seed", Value: fmt.Sprint(m.Seed)}, {Name: "lock", Value: m.Lock}}
	all = slices.DeleteFunc(all, func(p junit.Property) bool { return p.Value == "" })
	for _, name := range slices.Sorted(maps.Keys(m.Versions)) {
		all = append(all, junit.Property{Name: "version." + name, Value: m.Versions[name]})
	}
	for i := range all {
		all[i].Name, all[i].Value = format.Printable(all[i].Name), format.Printable(all[i].Value)
	}
	return &junit.Properties{List: all}
}

// junitOut is the output of the case: the sentence, the properties, the worst violations.
func junitOut(r *evidence.Run) string {
	lines := []string{strings.ToUpper(string(r.Verdict())) + ": " + r.Story.Sentence, "run it again: " + r.Manifest.Repeat,
		r.Path("")}
	for res := range evidence.Each(r.Judgement.Results) {
		if res.Outcome == checker.NotApplicable {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s: %s", res.Property, res.Outcome, res.Summary))
		for k, v := range res.Violations {
			if k == 3 {
				lines = append(lines, fmt.Sprintf("    and %s more", format.Number(res.Total-k)))
				break
			}
			lines = append(lines, fmt.Sprintf("    %s: %s (events %v)", format.Instant(v.Start), v.Text, v.Events))
		}
	}
	return format.Printable(strings.Join(lines, "\n"))
}
