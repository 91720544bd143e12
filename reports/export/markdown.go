package export

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// maxMarkdown is the size that CI services accept for a job summary (1 MiB per
// step on GitHub), minus room for the note that it was cut.
const maxMarkdown = 1<<20 - 256

// Markdown writes a job summary.
func Markdown(r *evidence.Run, w io.Writer) error {
	var b strings.Builder
	_, shape := timeline.VerdictStyle(r.Verdict())
	fmt.Fprintf(&b, "## %s %s: %s\n\n", shape, strings.ToUpper(string(r.Verdict())), format.Markdown(r.Title()))
	fmt.Fprintf(&b, "%s\n\n", format.MarkdownCodes(r.Story.Sentence))
	for _, m := range r.Missing {
		fmt.Fprintf(&b, "> %s\n\n", format.Markdown(m))
	}
	for _, m := range r.Story.Steps {
		fmt.Fprintf(&b, "%d. **%s** %s\n", m.N, format.Instant(m.Time), format.MarkdownCodes(m.Text))
	}
	if len(r.Judgement.Results) > 0 {
		b.WriteString("\n| property | outcome | expected | finding |\n| --- | --- | --- | --- |\n")
	}
	var skipped []string
	for res := range evidence.Each(r.Judgement.Results) {
		if evidence.IsNotApplicable(r, res) {
			skipped = append(skipped, string(res.Property))
			continue
		}
		_, s := timeline.OutcomeStyle(res.Outcome)
		fmt.Fprintf(&b, "| %s | %s %s | %s | %s |\n", res.Property, s, res.Outcome,
			format.Markdown(r.Manifest.Expect[string(res.Property)]), format.Markdown(res.Summary))
	}
	if len(skipped) > 0 {
		fmt.Fprintf(&b, "\nNot applicable: %s.\n", strings.Join(skipped, ", "))
	}
	for _, a := range r.Story.Advice {
		kind := "advice"
		if a.Measured {
			kind = "measured"
		}
		fmt.Fprintf(&b, "\n* _%s_: %s", kind, format.MarkdownCodes(a.Text))
		if a.Cost != "" {
			fmt.Fprintf(&b, " Cost: %s.", format.MarkdownCodes(a.Cost))
		}
	}
	for _, f := range r.Story.Facts {
		fmt.Fprintf(&b, "\n* %s", format.Markdown(f))
	}
	if r.Manifest.Repeat != "" {
		fmt.Fprintf(&b, "\n\nRun it again:\n\n<pre><code>%s</code></pre>\n", timeline.Escape(oneLine(r.Manifest.Repeat)))
	}
	markdownViolations(&b, r)
	text := r.Named(b.String(), format.Markdown)
	if len(text) > maxMarkdown {
		text = strings.ToValidUTF8(text[:maxMarkdown], "") + "\n\n(truncated; the rest is in report.html)\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func markdownViolations(b *strings.Builder, r *evidence.Run) {
	const most = 100
	n := 0
	for _, res := range r.Judgement.Results {
		for _, v := range res.Violations {
			if n == 0 {
				b.WriteString("\n<details><summary>Violations</summary>\n\n" +
					"| property | start | duration | class | finding | events |\n" + "| --- | --- | --- | --- | --- | --- |\n")
			}
			if n++; n > most {
				continue
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", res.Property, format.Instant(v.Start),
				format.Duration(r.During(&v).Length()), v.Class, format.Markdown(v.Text), strings.Trim(fmt.Sprint(v.Events), "[]"))
		}
	}
	if n > most {
		fmt.Fprintf(b, "\n%s more in report.html.\n", format.Number(n-most))
	}
	if n > 0 {
		b.WriteString("\n</details>\n")
	}
}
