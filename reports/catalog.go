package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/export"
	"github.com/lockchaos/lockchaos/reports/page"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// Format is a row of the catalog of report formats.
type Format struct {
	Name string                          // the value of --format
	Doc  string                          // one sentence
	File string                          // its name in a run directory; empty: it is only printed
	Make func(r *Run, w io.Writer) error // renders; may be called from several goroutines
}

// Catalog lists every format.
func Catalog() []Format {
	return []Format{
		{"html", "a self-contained page: what happened and why, with a timeline", rundir.ReportFile, page.Write},
		{"text", "the summary that chaos run prints", "", writeText},
		{"json", "a JSON object: configuration, verdict, story, numbers", "", export.JSON},
		{"junit", "JUnit XML: one case, passed if every property has the expected outcome; an error if the run could not " +
			"be made", "", export.JUnit},
		{"markdown", "a job summary for CI, at most 1 MiB", "", export.Markdown},
		{"svg", "the plot of overlapping holds as SVG", "overlap.svg", timeline.OverlapSVG},
		{"png", "the plot of overlapping holds as PNG", "", timeline.OverlapPNG},
		{"perfetto", "a trace for ui.perfetto.dev: tracks of clients and nodes, flows from grants to writes, faults", "",
			export.Perfetto},
		{"openmetrics", "the numbers of the run in the text format of OpenMetrics, for Prometheus", "", export.OpenMetrics},
		{"otlp", "spans of operations, holds and faults for OpenTelemetry: a request of OTLP/HTTP in JSON on each line", "",
			export.OTLP},
	}
}

// Render writes a run in the format of that name. The error about an unknown
// name lists the known ones.
func Render(r *Run, name string, w io.Writer) error {
	var names []string
	for _, f := range Catalog() {
		if f.Name == name {
			if err := f.Make(r, w); err != nil {
				return fmt.Errorf("rendering %s as %s: %w", r.Title(), name, err)
			}
			return nil
		}
		names = append(names, f.Name)
	}
	return fmt.Errorf("unknown format %q; use one of: %s", name, strings.Join(names, ", "))
}

// WriteAll writes report.html, the plots and linearization.html (none for a history without lock operations) into the
// run directory. It writes as many as it can; the error joins the errors of the others.
func WriteAll(r *Run) error {
	if r.Dir == nil {
		return errors.New("writing reports: this run has no directory")
	}
	type file struct {
		name  string
		write func(*Run, io.Writer) error
	}
	var files []file
	for _, spec := range timeline.Plots() {
		files = append(files, file{spec.Name + ".svg", func(r *Run, w io.Writer) error {
			return spec.Write(r, "svg",
				w)
		}})
	}
	files = append(files, file{rundir.LinearFile, linearization},
		file{rundir.ReportFile, page.Write}) // last, because it links the other files
	var errs []error
	for _, f := range files {
		var b bytes.Buffer
		err := f.write(r, &b)
		if errors.Is(err, checker.ErrNothingToShow) {
			continue
		}
		if err == nil {
			err = r.Dir.WriteFile(f.name, b.Bytes())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("writing %s of %s: %w", f.name, r.Title(), err))
		}
	}
	return errors.Join(errs...)
}

func writeText(r *Run, w io.Writer) error { return export.Text(w, r, export.TextOptions{}) }

func linearization(r *Run, w io.Writer) error {
	return page.WriteLinearization(w, r.History, r.Judgement)
}
