package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/diagram"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// issueOf is a run as the text of an issue, in Markdown: the reason, the command, the nodes and the clients when the
// violation began, the steps and the versions.
func issueOf(r *evidence.Run, shown evidence.Step, frame *diagram.Frame) string {
	var b strings.Builder
	m := &r.Manifest
	fmt.Fprintf(&b, "**%s: %s.** %s\n", strings.ToUpper(string(r.Verdict())), format.Markdown(r.Title()),
		format.MarkdownCodes(r.Story.Sentence))
	if m.Repeat != "" {
		b.WriteString("\nRun it again:\n\n" + fenced(m.Repeat))
	}
	if frame != nil {
		fmt.Fprintf(&b, "\nAt %s (step %d):\n\n%s", format.Instant(shown.Time), shown.N, fenced(frame.Text()))
	}
	if len(r.Story.Steps) > 0 {
		b.WriteString("\n")
	}
	for _, s := range r.Story.Steps {
		fmt.Fprintf(&b, "%d. **%s** %s%s\n", s.N, format.Instant(s.Time), format.MarkdownCodes(s.Text), eventOf(s))
	}
	if about := versionsOf(r); about != "" {
		b.WriteString("\n" + format.Markdown(about) + "\n")
	}
	return b.String()
}

// eventOf names the event of a step.
func eventOf(s evidence.Step) string {
	if s.Event < 0 {
		return ""
	}
	return fmt.Sprintf(" (event %d)", s.Event)
}

// versionsOf names the lock, the servers, the seed and the programs of a run: "Lock mutex, topology single, backend
// sim, seed 1; chaos v1, go go1.26."
func versionsOf(r *evidence.Run) string {
	m := &r.Manifest
	if r.HistoryOnly() {
		return ""
	}
	var with []string
	for _, name := range slices.Sorted(maps.Keys(m.Versions)) {
		with = append(with, strings.TrimSpace(name+" "+m.Versions[name]))
	}
	return fmt.Sprintf("Lock %s, topology %s, backend %s, seed %d; %s.", m.Lock, topologyText(r), m.Backend, m.Seed,
		strings.Join(with, ", "))
}

// fenced is text as a block of code in Markdown. Fences in the text are replaced, so none of them ends the block.
func fenced(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return "```text\n" + strings.ReplaceAll(strings.Join(format.Texts(lines, format.Line), "\n"), "```", "'''") + "\n```\n"
}
