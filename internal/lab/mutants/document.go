package mutants

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// Figure is the score in one line, for the README.
func Figure(rows []Row, r Report) string {
	s := scoreOf(rows, r, "")
	return fmt.Sprintf("finds %d of %d planted bugs (%s) and convicts %d of %d harmless changes",
		s.convicted, s.planted, s.percent(), s.wrong, s.harmless)
}

// score counts the rows of one kind.
type score struct {
	planted, convicted   int
	harmless, wrong      int // wrong: harmless and convicted all the same
	runs                 []int
	times                []time.Duration
	survivors, acquitted []Row
	equivalent           []Row
}

func scoreOf(rows []Row, r Report, kind string) (s score) {
	for _, row := range rows {
		if kind != "" && row.Kind != kind {
			continue
		}
		got := r.Results[row.Name]
		switch {
		case row.Harmless != "":
			s.harmless++
			s.acquitted = append(s.acquitted, row)
			if got.Convicted {
				s.wrong++
			}
			continue
		case row.Equivalent != "" && !got.Convicted:
			s.equivalent = append(s.equivalent, row)
			continue
		case got.Convicted:
			s.convicted++
			s.runs, s.times = append(s.runs, got.Runs), append(s.times, got.CPU)
		default:
			s.survivors = append(s.survivors, row)
		}
		s.planted++
	}
	slices.Sort(s.runs)
	slices.Sort(s.times)
	return s
}

func (s score) row(name string) string {
	runs, took := "-", "-"
	if n := len(s.runs); n > 0 {
		runs, took = format.Number(s.runs[n/2]), fmt.Sprintf("%.2f s", s.times[n/2].Seconds())
	}
	return fmt.Sprintf("| %s | %d of %d | %s | %s | %s | %d of %d |\n",
		name, s.convicted, s.planted, s.percent(), runs, took, s.wrong, s.harmless)
}

func (s score) percent() string {
	return fmt.Sprintf("%.0f %%", 100*float64(s.convicted)/float64(max(s.planted, 1)))
}

//go:embed head.md
var documentHead string

// Document is docs/contributors/detection.md.
func Document(rows []Row, r Report) string {
	total := scoreOf(rows, r, "")
	var b strings.Builder
	fmt.Fprintf(&b, documentHead, total.planted, format.Duration(r.Budget), total.harmless)
	for _, kind := range kinds() {
		b.WriteString(scoreOf(rows, r, kind).row(kind))
	}
	b.WriteString(total.row("**all**"))
	fmt.Fprintf(&b, "\nRows of convicted bugs name %d different sources: issues of other libraries and passages of "+
		"their documentation.\n"+
		"[Bugs](bugs.md) lists them, and those that were reproduced in the libraries themselves.\n",
		convictedSources(rows, r))
	if r.Coverage.Scenarios == 0 {
		b.WriteString("\nThe statement coverage of package `lock` by the scenarios was not measured.\n")
	} else {
		fmt.Fprintf(&b, "\nThe scenarios execute %.1f %% of the statements of package `lock` "+
			"(%d scenarios with %d seeds each).\n", r.Coverage.Percent, r.Coverage.Scenarios, r.Coverage.Seeds)
	}
	if len(r.Coverage.Unreached) > 0 {
		fmt.Fprintf(&b, "Functions that none of them calls:\n\n    %s\n", wrap(r.Coverage.Unreached))
	}
	b.WriteString("\n## Not convicted\n\n| bug | harm to users | why it survives |\n| --- | --- | --- |\n")
	for _, row := range total.survivors {
		fmt.Fprintf(&b, "| %s: %s | %s | %s |\n", row.Kind, row.Name, row.Harm, why(row, r.Results[row.Name]))
	}
	b.WriteString("\n## Equivalent\n\nThese look like bugs but cannot harm a user. They are explored like the others, " +
		"and do not count as planted\nbugs unless they are convicted.\n\n" +
		"| change | apparent harm | why it does no harm | runs |\n| --- | --- | --- | --- |\n")
	for _, row := range total.equivalent {
		fmt.Fprintf(&b, "| %s: %s | %s | %s | %d |\n",
			row.Kind, row.Name, row.Harm, row.Equivalent, r.Results[row.Name].Runs)
	}
	b.WriteString("\n## Convicted\n\n| bug | harm to users | by | runs |\n| --- | --- | --- | --- |\n")
	for _, row := range rows {
		if got := r.Results[row.Name]; row.Harmless == "" && got.Convicted {
			fmt.Fprintf(&b, "| %s: %s%s | %s | %s (%s) | %d |\n",
				row.Kind, row.Name, source(row), row.Harm, got.By, got.Property, got.Runs)
		}
	}
	b.WriteString("\n## Harmless changes\n\n| change | why it is harmless | runs |\n| --- | --- | --- |\n")
	for _, row := range total.acquitted {
		got, wrong := r.Results[row.Name], ""
		if got.Convicted {
			wrong = fmt.Sprintf(", **convicted** by %s (%s)", got.By, got.Property)
		}
		fmt.Fprintf(&b, "| %s: %s | %s | %d%s |\n", row.Kind, row.Name, row.Harmless, got.Runs, wrong)
	}
	return b.String()
}

// convictedSources counts the different sources of convicted rows.
func convictedSources(rows []Row, r Report) int {
	sources := make(map[string]bool)
	for _, row := range rows {
		if row.Source != "" && row.Harmless == "" && r.Results[row.Name].Convicted {
			sources[row.Source] = true
		}
	}
	return len(sources)
}

func source(r Row) string {
	if r.Source == "" {
		return ""
	}
	return " (" + r.Source + ")"
}

func why(row Row, r Result) string {
	switch {
	case row.Survives != "":
		return row.Survives
	case r.Runs == 0:
		return "no scenario reaches it"
	case r.Failed > 0:
		return fmt.Sprintf("not convicted in %s; %s could not be completed",
			format.Count(r.Runs, "run"), format.Count(r.Failed, "run"))
	}
	return fmt.Sprintf("not convicted in %s", format.Count(r.Runs, "run"))
}

// wrap puts names into lines of at most 110 columns.
func wrap(names []string) string {
	const width = 110
	var b strings.Builder
	column := 0
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		if column > 0 && column+len(name) >= width {
			b.WriteString("\n    ")
			column = 0
		} else if column > 0 {
			b.WriteString(" ")
		}
		b.WriteString(name)
		column += len(name) + 1
	}
	return b.String()
}
