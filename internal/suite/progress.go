package suite

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// ProgressFile is in the directory of a suite that is running, or that was killed.
const ProgressFile = "progress.json"

// progressEvery is how often it is written at most.
const progressEvery = 500 * time.Millisecond

// Progress is a suite of which some rows are still to come.
type Progress struct {
	Total   int       `json:"total"` // rows that there will be
	Updated time.Time `json:"updated"`
	Suite   Suite     `json:"suite"` // with the rows so far
	// Running are the titles of the scenarios that run, in the order in which they began.
	Running []string `json:"running,omitempty"`
}

// Left is how many rows have not begun.
func (p Progress) Left() int { return p.Total - len(p.Suite.Rows) - len(p.Running) }

// Sentence says how many rows are left, what became of the others, and what runs.
func (p Progress) Sentence() string {
	var parts []string
	if n := p.Left(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d left", n))
	}
	if len(p.Suite.Rows) > 0 {
		parts = append(parts, p.Suite.Sentence())
	}
	if len(p.Running) > 0 {
		parts = append(parts, "running "+strings.Join(p.Running, ", "))
	}
	return strings.Join(parts, "; ")
}

// ReadProgress reads the progress of the suite in a directory. The error wraps [fs.ErrNotExist] if none is running.
func ReadProgress(fsys fs.FS) (p Progress, err error) {
	text, err := fs.ReadFile(fsys, ProgressFile)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return p, fmt.Errorf("reading the progress of the suite: %w", err)
	}
	return p, nil
}

func (p Progress) write(dir string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, ProgressFile), text)
}

// Page writes the page of a suite that is running.
func (p Progress) Page(w io.Writer) error {
	return p.Suite.page(w, fmt.Sprintf("running, %d of %d done at %s: %s", len(p.Suite.Rows), p.Total,
		p.Updated.UTC().Format(time.TimeOnly), p.Sentence()))
}
