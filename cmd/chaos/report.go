package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports"
	"github.com/lockchaos/lockchaos/reports/export"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// runDirArg is the argument of the commands that read a run directory.
const runDirArg = "a run directory"

type reportOptions struct {
	historyFlags
	render, to string
	reads      bool // a flag about reading or judging a history was given
}

func newReport(s streams) *cobra.Command {
	var o reportOptions
	c := &cobra.Command{
		Use:   "report DIR|FILE|-",
		Short: "Render the report of a run again, or of any history",
		Long: `Renders a run directory; it needs no server. Without --format it writes report.html and the plots
in the directory again; with it, it prints that format or writes it to --to.
A run that was killed before it was judged is judged first, and one whose history or samples have
changed since is judged again; chaos check DIR writes the new verdict to verdict.json.

A file, standard input (-) or a Jepsen directory is only a history, in any format that chaos check
reads. It is judged as by chaos check, with the same flags, and the report says what it does not know:
the servers, and the faults unless the history has them. Without --format it writes NAME.report.html
beside the file.

` + readingHelp(),
		Example: `  chaos report chaos-runs/latest
  chaos report chaos-runs/failover/latest --format markdown >> "$GITHUB_STEP_SUMMARY"
  chaos report chaos-runs/latest --format png --to plots/
  chaos report store/latest/history.edn --dialect etcd
  chaos report pool.jsonl --permits 4 --clock-error 2ms
  zcat history.jsonl.gz | chaos report - --to report.html`,
		Args: oneArg("a run directory, a history file, or - for standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			c.Flags().Visit(func(f *pflag.Flag) { o.reads = o.reads || f.Name != "format" && f.Name != "to" })
			return report(s, args[0], o)
		},
	}
	o.judgingFlags.add(c)
	o.addWith(c, "from")
	c.Flags().StringVar(&o.render, "format", "", "output format: "+strings.Join(formatNames(), ", "))
	c.Flags().StringVar(&o.to, "to", "",
		"`FILE` to write to; for svg and png, a name without that extension is a directory, which gets every plot "+
			"(default: standard output)")
	_ = c.RegisterFlagCompletionFunc("format", completeNames(formatNames))
	return c
}

func report(s streams, path string, o reportOptions) error {
	format, to := o.render, o.to
	if err := known("--format: unknown format", format, formatNames()); format != "" && err != nil {
		return err
	}
	if isHistory(path) {
		return reportHistory(s, path, o)
	}
	if o.reads {
		return usage(fmt.Errorf("%s is a run directory: the flags about reading and judging apply only to a history "+
			"file (chaos check judges a run directory again)", path))
	}
	run, err := loadRun(path)
	if err != nil {
		return err
	}
	if run.Rejudged != "" {
		s.note("%s", run.Rejudged)
	}
	if format == "" {
		if err := reports.WriteAll(run); err != nil {
			return err
		}
		fmt.Fprintln(s.out, run.Dir.File(rundir.ReportFile))
		return nil
	}
	return renderTo(s, run, format, to)
}

// renderTo writes a format to a file, to a directory of plots, or else to standard output.
func renderTo(s streams, run *reports.Run, format, to string) error {
	switch {
	case (format == "svg" || format == "png") && namesDir(to, format):
		paths, err := timeline.WritePlots(run, format, to)
		for _, path := range paths {
			fmt.Fprintln(s.out, path)
		}
		return err
	case to != "":
		return renderFile(run, format, to)
	case format == "text":
		return export.Text(s.out, run, export.TextOptions{Width: console.Width(s.out), Color: console.Color(s.out)})
	}
	return reports.Render(run, format, s.out)
}

// loadRun reads a run directory that the user has named.
func loadRun(path string) (*reports.Run, error) {
	dir, err := openDir(path)
	if err != nil {
		return nil, err
	}
	run, err := reports.Load(dir)
	if err != nil {
		return nil, badPath(err)
	}
	return run, nil
}

// openDir opens a run directory that the user has named.
func openDir(path string) (*rundir.Dir, error) {
	dir, err := rundir.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !exists(path) {
		return nil, badPath(err)
	}
	return dir, usage(err)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// namesDir reports whether plots are written to a directory of that name: the name of a directory, or ending in a
// slash, or new and without the extension of the format. "" is standard output.
func namesDir(path, format string) bool {
	info, err := os.Stat(path)
	switch {
	case path == "":
		return false
	case err == nil:
		return info.IsDir()
	}
	return strings.HasSuffix(path, "/") || !strings.EqualFold(filepath.Ext(path), "."+format)
}

func renderFile(run *reports.Run, format, path string) error {
	var b bytes.Buffer
	if err := reports.Render(run, format, &b); err != nil {
		return err
	}
	return writeFile(format, path, b.Bytes())
}

func writeFile(format, path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing the %s report: %w", format, err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("writing the %s report: %w", format, err)
	}
	return nil
}

func formatNames() []string {
	return format.Texts(reports.Catalog(), func(row reports.Format) string { return row.Name })
}
