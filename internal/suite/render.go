package suite

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/junit"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// Sentence is the result in one sentence.
func (s Suite) Sentence() string {
	var parts []string
	for _, o := range Outcomes() {
		if n := s.Count(o); n > 0 && o != AsExpected {
			parts = append(parts, fmt.Sprintf("%s %s", format.Number(n), o.text()))
		}
	}
	text := fmt.Sprintf("%s of %s as expected", format.Number(s.Count(AsExpected)), format.Count(len(s.Rows), "run"))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// text is the outcome in a sentence.
func (o Outcome) text() string {
	return map[Outcome]string{
		Differs: "different", Broken: "broken", Unable: "could not start", Inconclusive: "inconclusive",
		NotRun: "not run", Skipped: "skipped", AsExpected: "as expected",
	}[o]
}

// Actual is the verdict of a row and its class.
func (r Row) Actual() string {
	text := cmp.Or(string(r.Verdict), "none")
	if r.Class != "" {
		text += ", " + string(r.Class)
	}
	return text
}

// why is every difference in one line.
func (r Row) why() string {
	text := strings.Join(r.Why, "; ")
	if r.Quarantine != "" {
		text += " (quarantine: " + r.Quarantine + ")"
	}
	return text
}

// report is the path of the page of a run that was kept.
func (r Row) report() string {
	if r.Run == "" {
		return ""
	}
	return path.Join(r.Run, rundir.ReportFile)
}

// Markdown writes a job summary: unexpected results first.
func (s Suite) Markdown(w io.Writer) error {
	var b strings.Builder
	mark := "✓"
	if s.ExitCode() != 0 {
		mark = "✕"
	}
	fmt.Fprintf(&b, "## %s chaos suite: %s\n\n", mark, format.Markdown(s.Sentence()))
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "> %s\n\n", format.Markdown(note))
	}
	if rows := s.Notable(); len(rows) > 0 {
		b.WriteString("| scenario | outcome | expected | verdict | why | run it again |\n" +
			"| --- | --- | --- | --- | --- | --- |\n")
		for _, r := range rows {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | <code>%s</code> |\n", format.Markdown(r.Scenario), r.Outcome.text(),
				format.Markdown(r.Expected), format.Markdown(r.Actual()), format.Markdown(r.why()), format.Markdown(r.Repeat))
		}
		b.WriteString("\n")
	}
	b.WriteString("<details><summary>All runs</summary>\n\n| scenario | seed | backend | outcome | verdict | seconds |\n" +
		"| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range s.Rows {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %.1f |\n", format.Markdown(r.Scenario), r.Seed, r.Backend,
			r.Outcome.text(), format.Markdown(r.Actual()), r.Seconds)
	}
	b.WriteString("\n</details>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// JUnit writes a case for each row. It fails if the row decides the exit code, is an error if the environment or the
// harness failed, and is skipped if it did not run or is in quarantine.
func (s Suite) JUnit(w io.Writer) error {
	all := junit.Suite{
		Name: "chaos suite", Time: fmt.Sprintf("%.3f", s.Finished.Sub(s.Started).Seconds()),
		Timestamp: s.Started.UTC().Format("2006-01-02T15:04:05"),
		Properties: &junit.Properties{List: []junit.Property{
			{Name: "chaos", Value: s.Version}, {Name: "backend", Value: s.Backend}, {Name: "filter", Value: s.Filter},
		}},
	}
	for _, note := range s.Notes {
		all.Properties.List = append(all.Properties.List, junit.Property{Name: "note", Value: format.Printable(note)})
	}
	for _, r := range s.Rows {
		c := junit.Case{
			Class: "chaos." + format.Printable(cmp.Or(r.Backend, s.Backend)), Name: format.Printable(r.Scenario),
			Time: fmt.Sprintf("%.3f", r.Seconds),
			Properties: &junit.Properties{List: []junit.Property{
				{Name: "lock", Value: format.Printable(r.Lock)}, {Name: "lock_version", Value: format.Printable(r.LockVersion)},
				{Name: "seed", Value: fmt.Sprint(r.Seed)}, {Name: "expected", Value: r.Expected},
				{Name: "verdict", Value: r.Actual()},
			}},
		}
		if r.Number > 1 {
			c.Name += fmt.Sprintf(" (%d)", r.Number)
		}
		message := &junit.Message{Message: format.Printable(r.why()), Text: format.Printable("run it again: " + r.Repeat)}
		switch {
		case r.Outcome == AsExpected:
		case r.Outcome == Skipped, r.Outcome == NotRun, r.Quarantine != "":
			c.Skipped = message
		case r.Outcome == Unable, r.Outcome == Broken:
			c.Error = message
		default:
			c.Failure = message
		}
		if page := r.report(); page != "" {
			c.Out = fmt.Sprintf("[[ATTACHMENT|%s]]", page) // as the JUnit attachments plugin of Jenkins and GitLab read it
		}
		all.Cases = append(all.Cases, c)
	}
	return junit.Write(w, all)
}

// Annotations writes a workflow command of GitHub for each row that is not as expected.
func (s Suite) Annotations(w io.Writer) error {
	for _, r := range s.Notable() {
		level := "error"
		if r.Outcome == Inconclusive || r.Outcome == NotRun || r.Quarantine != "" {
			level = "warning"
		}
		_, err := fmt.Fprintf(w, "::%s title=%s::%s\n", level,
			escapeProperty(fmt.Sprintf("chaos suite: %s %s", r.Scenario, r.Outcome.text())),
			escapeMessage(fmt.Sprintf("expected %s, got %s. %s. Run it again: %s", r.Expected, r.Actual(), r.why(), r.Repeat)))
		if err != nil {
			return err
		}
	}
	return nil
}

// escapeMessage and escapeProperty escape as actions/toolkit does (packages/core/src/command.ts).
func escapeMessage(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(format.Printable(s))
}

func escapeProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeMessage(s))
}
