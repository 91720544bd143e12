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
	planted, convicted    int
	harmless, wrong       int // wrong: harmless and convicted all the same
	runs                  []int
	times                 []time.Duration
	survivors, equivalent []Row
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
	fmt.Fprintf(&b, "\n## Every row\n\n[detection.tsv](detection.tsv) has each bug and each harmless change: the change, "+
		"its source, and the\nscenario and the property that convicted it, or why it survives. %d bugs were not convicted. "+
		"%d changes are\nequivalent: they look like bugs but cannot harm a user, and do not count as planted bugs.\n\n"+
		"    grep '^not convicted' docs/contributors/detection.tsv | cut -f 2,3,5,9\n", len(total.survivors),
		len(total.equivalent))
	return b.String()
}

// Data is docs/contributors/detection.tsv.
func Data(rows []Row, r Report) string {
	var b strings.Builder
	b.WriteString("outcome\tkind\tname\tsource\teffect\tby\tproperty\truns\treason\n")
	for _, row := range rows {
		got := r.Results[row.Name]
		outcome, reason := "convicted", ""
		switch {
		case row.Harmless != "":
			outcome, reason = "harmless", row.Harmless
			if got.Convicted {
				outcome = "harmless, convicted"
			}
		case got.Convicted:
		case row.Equivalent != "":
			outcome, reason = "equivalent", row.Equivalent
		default:
			outcome, reason = "not convicted", why(row, got)
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", outcome, row.Kind, row.Name, row.Source, row.Harm, got.By,
			got.Property, got.Runs, reason)
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
