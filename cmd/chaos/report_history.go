package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports"
)

// isHistory reports whether path is only a history: a file, standard input, or a Jepsen directory.
func isHistory(path string) bool {
	if path == "-" {
		return true
	}
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return true
	}
	_, notRun := rundir.Open(path)
	file, _, err := historyFile(path)
	return notRun != nil && err == nil && file != ""
}

// reportHistory judges a history alone and writes its report.
func reportHistory(s streams, path string, o reportOptions) error {
	if path == "-" && o.render == "" && o.to == "" {
		return usage(errors.New("the report of standard input needs --to FILE or --format"))
	}
	r, err := readJudged(s, path, &o.historyFlags)
	if err != nil {
		return err
	}
	in := r.in
	defer in.Close()
	notes := format.Texts(r.Others, otherReading.text)
	if text := r.keyNote(); text != "" {
		notes = append([]string{text}, notes...)
	}
	cite := func(want map[int]bool) (map[int]string, error) { return citeEvents(in, r.reading, want) }
	run, err := reports.FromHistory(filepath.Base(in.name), r.history, r.Judgement, notes, cite)
	if err != nil {
		return badPath(err)
	}
	if o.render == "" {
		o.render = "html"
		if o.to == "" {
			o.to = strings.TrimSuffix(in.name, filepath.Ext(in.name)) + ".report.html"
		}
		if err := renderFile(run, o.render, o.to); err != nil {
			return fmt.Errorf("%w; name another file with --to", err)
		}
		fmt.Fprintln(s.out, o.to)
		return nil
	}
	return renderTo(s, run, o.render, o.to)
}

// maxCitedEvent bounds how many bytes of an event a page quotes.
const maxCitedEvent = 2000

// citeEvents reads a history again for the events with those indices, as chaos convert would write them.
func citeEvents(in *input, reading foreign.Options, want map[int]bool) (map[int]string, error) {
	found := map[int]string{}
	_, err := foreign.ReadEvents(in.reader(), in.name, reading, func(e *history.Event, _ int) error {
		if want[int(e.Index)] {
			line := string(e.AppendJSON(nil))
			found[int(e.Index)] = line[:min(len(line), maxCitedEvent)]
		}
		return nil
	})
	return found, err
}
