package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
)

// maxMarkdown is the size of a job summary that CI services accept (1 MiB for
// each step on GitHub), less room for the line that says that it was cut.
const maxMarkdown = 1<<20 - 256

// writeMarkdown writes a job summary.
func writeMarkdown(r *Run, w io.Writer) error {
	var b strings.Builder
	shape := verdictShape(r)
	fmt.Fprintf(&b, "## %s %s: %s\n\n", shape, strings.ToUpper(string(r.verdict())), md(r.title()))
	fmt.Fprintf(&b, "%s\n\n", mdCodes(r.story.Sentence))
	for _, m := range r.Missing {
		fmt.Fprintf(&b, "> %s\n\n", md(m))
	}
	for _, m := range r.story.Steps {
		fmt.Fprintf(&b, "%d. **%s** %s\n", m.N, format.Instant(m.Time), mdCodes(m.Text))
	}
	b.WriteString("\n| property | outcome | expected | what was found |\n| --- | --- | --- | --- |\n")
	var silentOnes []string
	for i := range r.Judgement.Results {
		res := &r.Judgement.Results[i]
		if silent(r, res) {
			silentOnes = append(silentOnes, string(res.Property))
			continue
		}
		_, s := outcomeLook(res.Outcome)
		fmt.Fprintf(&b, "| %s | %s %s | %s | %s |\n", res.Property, s, res.Outcome,
			md(r.Manifest.Expect[string(res.Property)]), md(res.Summary))
	}
	if len(silentOnes) > 0 {
		fmt.Fprintf(&b, "\nNot applicable here: %s.\n", strings.Join(silentOnes, ", "))
	}
	for _, a := range r.story.Advice {
		kind := "advice"
		if a.Measured {
			kind = "measured here"
		}
		fmt.Fprintf(&b, "\n* _%s_: %s", kind, mdCodes(a.Text))
	}
	for _, f := range r.story.Facts {
		fmt.Fprintf(&b, "\n* %s", md(f))
	}
	if r.Manifest.Repeat != "" {
		fmt.Fprintf(&b, "\n\nRun it again:\n\n<pre><code>%s</code></pre>\n", escape(oneLine(r.Manifest.Repeat)))
	}
	mdViolations(&b, r)
	text := b.String()
	if len(text) > maxMarkdown {
		text = strings.ToValidUTF8(text[:maxMarkdown], "") + "\n\n(cut here: the rest is in report.html)\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func verdictShape(r *Run) string {
	var p page
	p.header(r)
	return p.Shape
}

func mdViolations(b *strings.Builder, r *Run) {
	const most = 100
	n := 0
	for _, res := range r.Judgement.Results {
		for _, v := range res.Violations {
			if n == 0 {
				b.WriteString("\n<details><summary>Violations</summary>\n\n| property | from | length | class | what | events |\n" +
					"| --- | --- | --- | --- | --- | --- |\n")
			}
			if n++; n > most {
				continue
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", res.Property, format.Instant(v.Start),
				format.Duration(r.during(&v).length()), v.Class, md(v.Text), strings.Trim(fmt.Sprint(v.Events), "[]"))
		}
	}
	if n > most {
		fmt.Fprintf(b, "\n%d more are in report.html.\n", n-most)
	}
	if n > 0 {
		b.WriteString("\n</details>\n")
	}
}

// md makes text of others harmless in Markdown: no markup, no new line, no new column.
func md(s string) string {
	s = strings.Join(strings.Fields(plain(s)), " ")
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", `\|`, "*", `\*`, "_", `\_`, "[", `\[`,
		"]", `\]`, "`", "\\`", "#", `\#`, "!", `\!`, "@", "@\u200b").Replace(s)
}

// mdCodes is md, but keeps `words in backquotes` as code.
func mdCodes(s string) string {
	parts := strings.Split(s, "`")
	for i, part := range parts {
		if i%2 == 1 && i < len(parts)-1 {
			part = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "&#124;").Replace(plain(part))
			parts[i] = "<code>" + strings.Join(strings.Fields(part), " ") + "</code>"
			continue
		}
		parts[i] = mdKeepEnds(part)
	}
	return strings.Join(parts, "")
}

// mdKeepEnds is md with the space at both ends kept, which separates text from code.
func mdKeepEnds(s string) string {
	out := md(s)
	if strings.HasPrefix(s, " ") {
		out = " " + out
	}
	if strings.HasSuffix(s, " ") && strings.TrimSpace(s) != "" {
		out += " "
	}
	return out
}
