// Package export writes a run in the formats that other programs and terminals read: text, JSON, JUnit XML, Markdown,
// Perfetto, OpenMetrics and OpenTelemetry; and the difference of two runs.
package export

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// TextOptions are options of [Text]. The zero value means 80 columns without color.
type TextOptions struct {
	Width int  // columns; 0 means 80, the minimum is 40
	Color bool // ANSI colors; the caller checks NO_COLOR and the terminal
}

// ANSI escape sequences.
const (
	ansiBold   = "\x1b[1m"
	ansiRed    = "\x1b[1;31m"
	ansiGreen  = "\x1b[1;32m"
	ansiYellow = "\x1b[1;33m"
	ansiOff    = "\x1b[0m"
)

// Text writes the summary of a run for a terminal: the verdict, the reason, a few
// facts, the path of the report, and last the command that repeats the run.
func Text(w io.Writer, r *evidence.Run, o TextOptions) error {
	t := textWriter{o: o}
	if t.o.Width == 0 {
		t.o.Width = 80
	}
	t.o.Width = max(t.o.Width, 40)
	t.verdict(r)
	t.wrap("", format.Line(r.Story.Sentence))
	t.b.WriteString("\n")
	for _, m := range r.Story.Steps {
		t.wrap(fmt.Sprintf("%10s  ", format.Instant(m.Time)), format.Line(m.Text))
	}
	if len(r.Story.Steps) > 0 {
		t.b.WriteString("\n")
	}
	t.facts(r)
	if r.Manifest.Repeat != "" {
		t.b.WriteString("\nrun it again:\n" + oneLine(r.Manifest.Repeat) + "\n")
	}
	_, err := io.WriteString(w, r.Named(t.b.String(), format.Line))
	return err
}

type textWriter struct {
	b strings.Builder
	o TextOptions
}

func (t *textWriter) inColor(color, s string) string {
	if !t.o.Color {
		return s
	}
	return color + s + ansiOff
}

func (t *textWriter) verdict(r *evidence.Run) {
	color := ansiBold
	switch r.Verdict() {
	case checker.Unsafe:
		color = ansiRed
	case checker.Safe:
		color = ansiGreen
	case checker.Inconclusive, checker.NotRun:
		color = ansiYellow
	}
	t.b.WriteString(t.inColor(color, strings.ToUpper(string(r.Verdict()))))
	if r.Verdict() == checker.Unsafe && r.Judgement.Class != "" {
		t.b.WriteString(" (" + string(r.Judgement.Class) + ")")
	}
	if r.HistoryOnly() {
		t.b.WriteString("  " + oneLine(r.Title()) + "\n")
		return
	}
	fmt.Fprintf(&t.b, "  %s · seed %d · %s\n", oneLine(r.Title()), r.Manifest.Seed, oneLine(r.Manifest.Backend))
}

func (t *textWriter) facts(r *evidence.Run) {
	if ended := evidence.StateText(&r.Manifest); ended != "" {
		t.wrap("  ended       ", format.Line(ended))
	}
	for _, m := range r.Missing {
		t.wrap("  missing     ", format.Line(m))
	}
	if len(r.Story.Facts) > 0 {
		t.wrap("  facts       ", format.Line(strings.Join(r.Story.Facts, "; ")))
	}
	var bad, open []string
	good := 0
	for _, res := range r.Judgement.Results {
		switch res.Outcome {
		case checker.Violated:
			bad = append(bad, fmt.Sprintf("%s (%d)", res.Property, res.Total))
		case checker.Undecided:
			open = append(open, string(res.Property))
		case checker.Holds:
			good++
		}
	}
	if len(bad) > 0 {
		t.wrap("  violated    ", strings.Join(bad, ", "))
	}
	if len(open) > 0 {
		t.wrap("  undecided   ", strings.Join(open, ", "))
	}
	if good > 0 {
		t.wrap("  holds       ", format.Count(good, "property"))
	}
	if len(r.Manifest.Expect) > 0 && r.Judged && r.Verdict() != checker.NotRun {
		text := "as the scenario expects"
		if !evidence.AsExpected(r) {
			text = t.inColor(ansiRed, "not as the scenario expects") + ": " + unmet(r)
		}
		t.wrap("  expected    ", text)
	}
	if text := evidence.Production(r); text != "" {
		t.wrap("  production  ", format.Line(text))
	}
	if limits := r.Judgement.Thresholds; len(limits) > 0 {
		var parts []string
		for _, c := range limits {
			part := fmt.Sprintf("%s %s %s", c.Name, c.Actual, c.Expected)
			if !c.Met {
				part = t.inColor(ansiRed, fmt.Sprintf("%s %s, not %s", c.Name, c.Actual, c.Expected))
			}
			parts = append(parts, part)
		}
		t.wrap("  thresholds  ", strings.Join(parts, "; "))
	}
	if path := r.Path(rundir.ReportFile); path != "" && r.Dir.Has(rundir.ReportFile) {
		t.b.WriteString("  report      " + format.Line(path) + "\n") // not wrapped: terminals make it a link
	}
}

// unmet lists the expectations that are not met.
func unmet(r *evidence.Run) string {
	var parts []string
	for _, e := range evidence.Expectations(r) {
		if !e.Met {
			parts = append(parts, expect.Text(e))
		}
	}
	return strings.Join(parts, "; ")
}

// wrap writes text after a label, wrapped between words and indented.
func (t *textWriter) wrap(label, text string) {
	indent := len([]rune(label))
	line := label
	room := t.o.Width - indent
	used := 0
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "::") {
			word = "\u200b" + word // "::error::" at the start of a line is a command to GitHub Actions
		}
		n := len([]rune(word))
		if used > 0 && used+1+n > room {
			t.b.WriteString(line + "\n")
			line, used = strings.Repeat(" ", indent), 0
		}
		if used > 0 {
			line += " "
			used++
		}
		line += word
		used += n
	}
	t.b.WriteString(line + "\n")
}

// oneLine is printable text without line breaks.
func oneLine(s string) string { return strings.Join(strings.Fields(format.Line(s)), " ") }
