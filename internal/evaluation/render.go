package evaluation

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/lockchaos/lockchaos/internal/evaluation/tally"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/junit"
	"github.com/lockchaos/lockchaos/internal/suite"
)

// The files of a test, in its directory.
const (
	JSONFile    = "test.json"
	junitFile   = "junit.xml"
	summaryFile = "summary.md"
	PageFile    = "index.html"
)

// Write writes the files of a test to dir, which it makes if necessary.
func (r Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the results of the test: %w", err)
	}
	for _, file := range []struct {
		name  string
		write func(Report, io.Writer) error
	}{{JSONFile, Report.JSON}, {junitFile, Report.JUnit}, {summaryFile, Report.Markdown}, {PageFile, Report.Page}} {
		if err := suite.WriteFile(dir, file.name, func(w io.Writer) error { return file.write(r, w) }); err != nil {
			return err
		}
	}
	return nil
}

// JSON writes r as test.json has it.
func (r Report) JSON(w io.Writer) error {
	return format.WriteJSON(w, r)
}

// Sentence is the result in one sentence.
func (r Report) Sentence() string {
	runs := fmt.Sprintf("%s (%s generated)", format.Count(r.Runs.All, "run"), format.Number(r.Runs.Generated))
	if r.Untestable() {
		return "the client failed its checks: the lock was not tested"
	}
	if n := len(r.Own()); n > 0 {
		return format.Count(n, "finding") + " of this lock in " + runs
	}
	if r.Interrupted {
		return "interrupted after " + runs + " without a finding of this lock"
	}
	if r.TooLittle() {
		return "too little was tested to decide: a verdict in " + format.Number(r.Runs.Safe+r.Runs.Unsafe) + " of " + runs
	}
	text := "no finding of this lock in " + runs
	if n := len(r.Accepted()); n > 0 {
		text += ", " + format.Count(n, "finding") + " accepted"
	}
	return text
}

// Next is the next step for the reader.
func (r Report) Next() (text string) {
	switch {
	case r.Untestable():
		return "Correct the client first; chaos doctor --lock repeats its checks."
	case len(r.Own()) > 0 && r.Own()[0].Change() != "":
		text = "Change the lock as the first finding says, and repeat its run with the command there."
	case len(r.Own()) > 0:
		text = "Find the cause of the first finding in its report, and repeat its run with the command there."
	case r.TooLittle():
		text = "Repeat the test on a machine that is less busy, or with fewer --jobs or more --time."
	case len(r.Common()) > 0:
		text = "Nothing has to change in the lock. Its users need what is said for any lock of this kind."
	default:
		text = "Nothing has to change."
	}
	if r.Unstated != 0 {
		text += " State " + r.Unstated.String() + " in the reply to init: the lock does that, but nothing judges it."
	}
	return text
}

// Text writes the result for a terminal.
func (r Report) Text(w io.Writer) error {
	var b strings.Builder
	took := ", in " + format.Duration(r.Finished.Sub(r.Started))
	if r.Untestable() {
		took = ""
	}
	fmt.Fprintf(&b, "%s: %s%s\n%s\n", format.Printable(r.Lock), r.Sentence(), took, r.Next())
	for _, f := range r.WrongClient() {
		fmt.Fprintf(&b, "  client, %s: %s\n", f.Check, format.Printable(f.Detail))
	}
	textFindings(&b, "Your lock", r.Own())
	textFindings(&b, "Accepted by the baseline", r.Accepted())
	textFindings(&b, "Any lock of this kind", r.Common())
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(r.Held) > 0 {
		fmt.Fprintf(table, "\nHolds\n")
		for _, h := range r.Held {
			fmt.Fprintf(table, "  %s\t%s\t%s\n", h.Property, h.Frequency(), h.Text)
		}
	}
	_ = table.Flush() // b has no errors
	if r.Conditions != "" {
		fmt.Fprintf(&b, "  tested with %s\n", r.Conditions)
	}
	if len(r.NotTested) > 0 {
		b.WriteString("\nNot tested\n")
		for _, n := range r.NotTested {
			b.WriteString("  " + format.Printable(n.Line()) + "\n")
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", format.Printable(note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func textFindings(b *strings.Builder, title string, all []Finding) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, f := range all {
		fmt.Fprintf(b, "  %s, %s\n    %s\n", f.Name(), f.Frequency(), format.Printable(tally.Plain(f.Sentence)))
		if f.Because != "" {
			fmt.Fprintf(b, "    a lock with these promises need not survive %s\n", format.Printable(f.Because))
		}
		if change := f.Change(); change != "" {
			fmt.Fprintf(b, "    change: %s\n", format.Printable(change))
		}
		if f.Accepted != "" {
			fmt.Fprintf(b, "    accepted: %s\n", format.Printable(f.Accepted))
		}
		fmt.Fprintf(b, "    %s\n", format.Printable(f.Repeat))
		if f.Run != "" {
			fmt.Fprintf(b, "    %s\n", format.Printable(f.Report()))
		}
	}
}

// Markdown writes a job summary.
func (r Report) Markdown(w io.Writer) error {
	var b strings.Builder
	mark := "✓"
	if r.ExitCode() != 0 {
		mark = "✕"
	}
	fmt.Fprintf(&b, "## %s chaos test %s: %s\n\n", mark, format.Markdown(r.Lock), format.Markdown(r.Sentence()))
	fmt.Fprintf(&b, "%s\n\n", r.Next())
	for _, f := range r.WrongClient() {
		fmt.Fprintf(&b, "* %s: %s\n", f.Check, format.Markdown(f.Detail))
	}
	for _, part := range []struct {
		title string
		list  []Finding
	}{{"Your lock", r.Own()}, {"Accepted by the baseline", r.Accepted()}, {"Any lock of this kind", r.Common()}} {
		if len(part.list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n| finding | seen | why | change | run it again |\n", part.title)
		b.WriteString("| --- | --- | --- | --- | --- |\n")
		for _, f := range part.list {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | <code>%s</code> |\n", format.Markdown(f.Name()), f.Frequency(),
				format.Markdown(tally.Plain(f.Sentence)), format.Markdown(f.Change()), format.Markdown(f.Repeat))
		}
		b.WriteString("\n")
	}
	if len(r.Held) > 0 {
		b.WriteString("### Holds\n\n| property | runs | examined |\n| --- | --- | --- |\n")
		for _, h := range r.Held {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", h.Property, h.Frequency(), h.Text)
		}
		b.WriteString("\n")
	}
	if len(r.NotTested) > 0 {
		b.WriteString("<details><summary>Not tested</summary>\n\n")
		for _, n := range r.NotTested {
			fmt.Fprintf(&b, "* %s\n", format.Markdown(n.Line()))
		}
		b.WriteString("\n</details>\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// JUnit writes a case for each property that held (passed), each finding of the lock (failed, or skipped if the
// baseline accepts it), and each finding that any lock of its kind has (skipped).
func (r Report) JUnit(w io.Writer) error {
	all := junit.Suite{
		Name: "chaos test " + format.Printable(r.Lock), Time: fmt.Sprintf("%.3f", r.Finished.Sub(r.Started).Seconds()),
		Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"),
		Properties: &junit.Properties{List: []junit.Property{
			{Name: "chaos", Value: r.Version}, {Name: "lock", Value: format.Printable(r.Lock)},
			{Name: "seed", Value: fmt.Sprint(r.Seed)}, {Name: "result", Value: r.Sentence()},
		}},
	}
	const class = "chaos.test"
	for _, f := range r.WrongClient() {
		c := junit.Case{Class: class, Name: "client: " + f.Check}
		message := &junit.Message{Message: format.Printable(f.Detail)}
		if c.Skipped = message; f.Last {
			c.Failure, c.Skipped = message, nil
		}
		all.Cases = append(all.Cases, c)
	}
	for _, f := range r.Findings {
		c := junit.Case{Class: class, Name: format.Printable(f.Name())}
		message := &junit.Message{Message: format.Printable(tally.Plain(f.Sentence)),
			Text: format.Printable("run it again: " + f.Repeat)}
		if f.Own && f.Accepted == "" {
			c.Failure = message
		} else {
			message.Message = cmp.Or(f.Accepted, "any lock of this kind") + ": " + message.Message
			c.Skipped = message
		}
		if page := f.Report(); page != "" {
			c.Out = fmt.Sprintf("[[ATTACHMENT|%s]]", page)
		}
		all.Cases = append(all.Cases, c)
	}
	for _, h := range r.Held {
		all.Cases = append(all.Cases, junit.Case{Class: class, Name: string(h.Property), Out: h.Text})
	}
	if r.TooLittle() {
		all.Cases = append(all.Cases, junit.Case{Class: class, Name: "enough was tested",
			Error: &junit.Message{Message: r.Sentence()}})
	}
	return junit.Write(w, all)
}
