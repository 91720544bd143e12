package reports

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// Load reads a run directory. It judges a run without a verdict. A missing verdict or missing samples are no error:
// Missing says so, and every format shows it. The error is about run.json or history.jsonl, without which there is
// nothing to show.
func Load(dir *rundir.Dir) (*Run, error) {
	r, err := open(dir)
	if err != nil {
		return nil, err
	}
	writeStory(r)
	r.cited, err = citedLines(dir.File(rundir.HistoryFile), r.citedEvents())
	return r, err
}

// FromHistory makes a Run from a history without a run directory, which another program may have recorded. Missing says
// what is not known about it, and has notes. cite returns the events with those indices as text, for the page.
func FromHistory(name string, h *history.History, j checker.Judgement, notes []string,
	cite func(indices map[int]bool) (map[int]string, error)) (*Run, error) {
	r := ofHistory(name, h, j, notes)
	writeStory(r)
	var err error
	if r.cited, err = cite(r.citedEvents()); err != nil {
		return nil, fmt.Errorf("quoting the events of %s: %w", name, err)
	}
	return r, nil
}
