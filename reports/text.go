package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// TextOptions say how text is laid out. The zero value is 80 columns without colour.
type TextOptions struct {
	Width  int  // columns; 0 is 80, less than 40 is 40
	Colour bool // ANSI colours; the caller has asked NO_COLOR and the terminal
}

// Escape sequences of the few colours there are.
const (
	ansiBold   = "\x1b[1m"
	ansiRed    = "\x1b[1;31m"
	ansiGreen  = "\x1b[1;32m"
	ansiYellow = "\x1b[1;33m"
	ansiOff    = "\x1b[0m"
)

// Text writes what a terminal shows at the end of a run: the verdict, the
// sentence, a few facts, where the report is, and last the command that runs it again.
func Text(w io.Writer, r *Run, o TextOptions) error {
	t := texter{o: o}
	if t.o.Width == 0 {
		t.o.Width = 80
	}
	t.o.Width = max(t.o.Width, 40)
	t.verdict(r)
	t.wrap("", plain(r.story.Sentence))
	t.b.WriteString("\n")
	for _, m := range r.story.Steps {
		t.wrap(fmt.Sprintf("%10s  ", format.Instant(m.Time)), plain(m.Text))
	}
	if len(r.story.Steps) > 0 {
		t.b.WriteString("\n")
	}
	t.facts(r)
	if r.Manifest.Repeat != "" {
		t.b.WriteString("\nrun it again:\n" + oneLine(r.Manifest.Repeat) + "\n")
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

type texter struct {
	b strings.Builder
	o TextOptions
}

func (t *texter) paint(colour, s string) string {
	if !t.o.Colour {
		return s
	}
	return colour + s + ansiOff
}

func (t *texter) verdict(r *Run) {
	colour := ansiBold
	switch r.verdict() {
	case checker.Unsafe:
		colour = ansiRed
	case checker.Safe:
		colour = ansiGreen
	case checker.Inconclusive:
		colour = ansiYellow
	}
	t.b.WriteString(t.paint(colour, strings.ToUpper(string(r.verdict()))))
	if r.verdict() == checker.Unsafe && r.Judgement.Class != "" {
		t.b.WriteString(" (" + string(r.Judgement.Class) + ")")
	}
	fmt.Fprintf(&t.b, "  %s · seed %d · %s\n", oneLine(r.title()), r.Manifest.Seed, oneLine(r.Manifest.Backend))
}

func (t *texter) facts(r *Run) {
	if s := r.Manifest.State; s != "" && s != rundir.Complete {
		t.wrap("  ended       ", plain(stateText(&r.Manifest)))
	}
	for _, m := range r.Missing {
		t.wrap("  missing     ", plain(m))
	}
	if len(r.story.Facts) > 0 {
		t.wrap("  facts       ", plain(strings.Join(r.story.Facts, "; ")))
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
	if len(r.Manifest.Expect) > 0 && r.Judged {
		text := "as the scenario expects"
		if !Met(r) {
			text = t.paint(ansiRed, "not as the scenario expects") + ": " + unmet(r)
		}
		t.wrap("  expected    ", text)
	}
	if path := r.path(rundir.ReportFile); path != "" {
		t.b.WriteString("  report      " + plain(path) + "\n") // never wrapped: terminals make it a link
	}
}

// unmet names what came out otherwise than expected.
func unmet(r *Run) string {
	var parts []string
	for _, e := range Expectations(r) {
		if !e.Met {
			parts = append(parts, fmt.Sprintf("%s is %s%s", e.Name, orNone(e.Actual), wanted(e.Expected)))
		}
	}
	return strings.Join(parts, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "not judged"
	}
	return s
}

func wanted(s string) string {
	if s == "" {
		return ""
	}
	return " rather than " + s
}

// wrap writes text behind a label, broken between words, later lines indented alike.
func (t *texter) wrap(label, text string) {
	indent := len([]rune(label))
	line := label
	room := t.o.Width - indent
	used := 0
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "::") {
			word = "\u200b" + word // a name must not become a command to the CI that reads the log
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

// plain makes names of others harmless on a terminal: no escape sequence of
// theirs gets through.
func plain(s string) string { return strings.Map(printable, s) }

// oneLine is plain without line breaks.
func oneLine(s string) string { return strings.Join(strings.Fields(plain(s)), " ") }
