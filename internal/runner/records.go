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

// records are the files of a run. For one of the thousands of runs of an exploration it is a history in memory and
// nothing on disk.
type records struct {
	dir    *rundir.Dir    // nil: in memory
	ledger *ledger.Ledger // nil: in memory
	files  []*os.File
	text   bytes.Buffer // the history in memory
}

// create makes the run directory and opens the ledger.
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

// id is the name of the run; "" in memory.
func (r *records) id() string {
	if r.dir == nil {
		return ""
	}
	return r.dir.ID
}

// createFiles creates empty files before anything is started, so that a run that ends before its first event can be
// judged and shown like any other.
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

// open opens the files for writing; witness is nil in memory.
func (r *records) open() (events, witness io.Writer, err error) {
	if r.dir == nil {
		return &r.text, nil, nil
	}
	for _, name := range []string{rundir.HistoryFile, rundir.WitnessFile} {
		f, err := os.OpenFile(r.dir.File(name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("opening a file of the run: %w", err)
		}
		r.files = append(r.files, f)
	}
	return r.files[0], r.files[1], nil
}

// close closes the files of open.
func (r *records) close() error {
	var all []error
	for _, f := range r.files {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}

// history reads the history back.
func (r *records) history() (*history.History, error) {
	if r.dir == nil {
		return history.ReadAll(bytes.NewReader(r.text.Bytes()), rundir.HistoryFile)
	}
	return history.ReadFile(r.dir.File(rundir.HistoryFile))
}

// samples reads back the samples that the witness recorded on disk; nil if they cannot be read or are in memory.
func (r *records) samples() []history.Sample {
	if r.dir == nil {
		return nil
	}
	return r.dir.Samples()
}

// logs is where the logs of clients are, for error messages.
func (r *records) logs() string {
	if r.dir == nil {
		return "no logs: the run is in memory"
	}
	return "see " + r.dir.File(rundir.LogsDir)
}
