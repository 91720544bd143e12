package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// records is where a run leaves what is known of it: in a run directory, or,
// for one of thousands of runs of which hardly any is looked at, its history in
// memory and nothing on disk.
type records struct {
	dir    *rundir.Dir    // nil: in memory
	ledger *ledger.Ledger // nil: in memory
	files  []*os.File
	text   bytes.Buffer // the history in memory
}

// create makes the place for the records of o's run.
func (r *records) create(o Options, begun time.Time) (err error) {
	if o.InMemory {
		return nil
	}
	if r.dir, err = rundir.Create(o.Out, o.Scenario.Name, o.Seed, begun); err != nil {
		return err
	}
	r.ledger, err = ledger.Open(strings.ReplaceAll(r.dir.ID, "/", "."))
	return err
}

// id is the name of the run; a run in memory has none.
func (r *records) id() string {
	if r.dir == nil {
		return ""
	}
	return r.dir.ID
}

// begin makes the records, still empty, before anything is started: a run that
// ends before its first event can be checked and shown like any other.
func (r *records) createFiles(m rundir.Manifest) error {
	if r.dir == nil {
		return nil
	}
	all := []error{r.manifest(m)}
	for _, name := range []string{rundir.HistoryFile, rundir.WitnessFile} {
		all = append(all, r.dir.WriteFile(name, nil))
	}
	return errors.Join(all...)
}

func (r *records) manifest(m rundir.Manifest) error {
	if r.dir == nil {
		return nil
	}
	return r.dir.WriteManifest(m)
}

func (r *records) verdict(j checker.Judgement) error {
	if r.dir == nil {
		return nil
	}
	return r.dir.WriteVerdict(j)
}

// open opens the records for writing; witness is nil if nobody will read it.
func (r *records) open() (events, witness io.Writer, err error) {
	if r.dir == nil {
		return &r.text, nil, nil
	}
	for _, name := range []string{rundir.HistoryFile, rundir.WitnessFile} {
		f, err := os.OpenFile(r.dir.File(name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o644)
		if err != nil {
			return nil, nil, fmt.Errorf("opening a record of the run: %w", err)
		}
		r.files = append(r.files, f)
	}
	return r.files[0], r.files[1], nil
}

// close closes what open has opened.
func (r *records) close() error {
	var all []error
	for _, f := range r.files {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}

// history is what was recorded, read back.
func (r *records) history() (*history.History, error) {
	if r.dir == nil {
		return history.ReadAll(bytes.NewReader(r.text.Bytes()), rundir.HistoryFile)
	}
	return history.ReadFile(r.dir.File(rundir.HistoryFile))
}

// logs is where to look for what clients said.
func (r *records) logs() string {
	if r.dir == nil {
		return "no logs: the run is kept in memory"
	}
	return "see " + r.dir.File(rundir.LogsDir)
}
