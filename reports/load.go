// Package reports renders runs. Its Go API is not a promise: use the command line.
//
// It renders a run directory as an HTML page, text for a terminal, JSON, JUnit XML, a job summary in Markdown, and
// plots. It needs no server and starts nothing, and it judges only runs that were killed before their verdict.
//
// [Load] reads a run directory, [Render] writes it in one of the formats of [Catalog], and [WriteAll] writes the files
// of a run directory. A report makes only claims that the data shows.
package reports

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/page"
	"github.com/lockchaos/lockchaos/reports/story"
)

// Run is a run directory, parsed, with its story.
type Run = evidence.Run

// Load reads a run directory. It judges a run without a verdict. A missing verdict or missing samples are no error:
// Missing says so, and every format shows it. The error is about run.json or history.jsonl, without which there is
// nothing to show.
func Load(dir *rundir.Dir) (*Run, error) {
	r, err := evidence.Open(dir)
	if err != nil {
		return nil, err
	}
	return withStory(r)
}

// LoadAs is [Load] for the program that made the run and knows how it ended, even if it could not write that.
func LoadAs(dir *rundir.Dir, m rundir.Manifest, j checker.Judgement) (*Run, error) {
	r, err := evidence.OpenAs(dir, m, j)
	if err != nil {
		return nil, err
	}
	return withStory(r)
}

// withStory adds the story, and the lines of the history that the page cites.
func withStory(r *Run) (_ *Run, err error) {
	dir := r.Dir
	story.Write(r)
	r.Cited, err = page.CitedLines(dir.File(rundir.HistoryFile), page.CitedEvents(r))
	return r, err
}

// FromHistory makes a Run from a history without a run directory, which another program may have recorded. Missing
// lists the gaps in the data, and has notes. cite returns the events with those indices as text, for the page.
func FromHistory(name string, h *history.History, j checker.Judgement, notes []string,
	cite func(indices map[int]bool) (map[int]string, error)) (*Run, error) {
	r := evidence.OfHistory(name, h, j, notes)
	story.Write(r)
	var err error
	if r.Cited, err = cite(page.CitedEvents(r)); err != nil {
		return nil, fmt.Errorf("quoting the events of %s: %w", name, err)
	}
	return r, nil
}
