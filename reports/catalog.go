package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// Format is a row of the catalogue of formats.
type Format struct {
	Name string                          // as --format has it
	Doc  string                          // one sentence
	File string                          // the name it is given in a run directory; empty: it is only printed
	Make func(r *Run, w io.Writer) error // renders; may be called from several goroutines
}

// Catalog is every format that there is.
func Catalog() []Format {
	return []Format{
		{"html", "one self-contained page: what happened and why, with a picture", rundir.ReportFile, writeHTML},
		{"text", "what a terminal shows at the end of a run", "", writeText},
		{"json", "one JSON object: what was run, the verdict, the story, the numbers", "", writeJSON},
		{"junit", "JUnit XML, one case for each property, measured against what the scenario expects", "", writeJUnit},
		{"markdown", "a job summary for CI, at most 1 MiB", "", writeMarkdown},
		{"svg", "the plot of overlapping leases as SVG", "overlap.svg", overlapSVG},
		{"png", "the plot of overlapping leases as PNG", "", overlapPNG},
	}
}

// Render writes a run in the format of that name. A name that is not in the
// catalogue is an error that lists those that are.
func Render(r *Run, format string, w io.Writer) error {
	var names []string
	for _, f := range Catalog() {
		if f.Name == format {
			if err := f.Make(r, w); err != nil {
				return fmt.Errorf("rendering %s as %s: %w", r.title(), format, err)
			}
			return nil
		}
		names = append(names, f.Name)
	}
	return fmt.Errorf("format %q is not known; use one of: %s", format, strings.Join(names, ", "))
}

// WriteAll writes the files that every run ends with into its directory:
// report.html, the plots and linearization.html (none for a history without lock
// operations). One that cannot be written does not stop the
// others; the error joins them all.
func WriteAll(r *Run) error {
	if r.Dir == nil {
		return errors.New("writing reports: this run has no directory")
	}
	type file struct {
		name string
		make func(*Run, io.Writer) error
	}
	var files []file
	for _, pic := range pictures() {
		files = append(files, file{pic.name + ".svg", func(r *Run, w io.Writer) error { return pic.write(r, "svg", w) }})
	}
	files = append(files, []file{
		{rundir.LinearFile, linearization}, {rundir.ReportFile, writeHTML}, // the page links what is there: it comes last
	}...)
	var errs []error
	for _, f := range files {
		var b bytes.Buffer
		err := f.make(r, &b)
		if errors.Is(err, checker.ErrNothingToShow) {
			continue
		}
		if err == nil {
			err = r.Dir.WriteFile(f.name, b.Bytes())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("writing %s of %s: %w", f.name, r.title(), err))
		}
	}
	return errors.Join(errs...)
}

func writeText(r *Run, w io.Writer) error { return Text(w, r, TextOptions{}) }

func linearization(r *Run, w io.Writer) error {
	return checker.WriteLinearization(w, r.History, r.Judgement)
}
