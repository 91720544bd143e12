package suite

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/filelock"
)

// HistoryFile has a line for each row of every suite that was added; lines are only ever appended.
const HistoryFile = "history/suite.jsonl"

// Record is a line of the history.
type Record struct {
	Night   time.Time `json:"night"` // start of the suite
	Version string    `json:"chaos"`
	Row
}

// History is the records of a folder, in the order in which they were added.
type History struct {
	Dir     string
	Records []Record
}

// OpenHistory reads the history in dir, which may be missing. A last line that was not written completely is ignored.
func OpenHistory(dir string) (History, error) {
	h := History{Dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, HistoryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("reading the history of suites: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for n := 1; lines.Scan(); n++ {
		var r Record
		err := json.Unmarshal(lines.Bytes(), &r)
		switch {
		case err == nil && r.Format != Format:
			return h, fmt.Errorf("reading %s: line %d has format %d; this program reads format %d", HistoryFile, n,
				r.Format, Format)
		case err == nil:
			h.Records = append(h.Records, r)
		case bytes.Count(text, []byte("\n")) >= n: // else the last line, without its end
			return h, fmt.Errorf("reading %s: line %d: %w", HistoryFile, n, err)
		}
	}
	return h, nil
}

// LockHistory locks the history in dir, which it makes if necessary, until the returned file is closed: of two programs
// that add suites at once, the second one calls waits, and waits until ctx ends. On a file system without locks nothing
// waits.
func LockHistory(ctx context.Context, dir string, waits func()) (io.Closer, error) {
	f, err := openHistoryFile(dir)
	if err != nil {
		return nil, fmt.Errorf("locking the history of suites: %w", err)
	}
	locked, err := filelock.Try(f)
	if err == nil && !locked {
		waits()
		result := make(chan error, 1)
		go func() { result <- filelock.Wait(f) }()
		select {
		case err = <-result:
		case <-ctx.Done(): // the goroutine ends with the program, or when the lock is free
			go func() {
				<-result
				_ = f.Close()
			}()
			return nil, fmt.Errorf("waiting for the lock of the history of suites: %w", ctx.Err())
		}
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, errors.Join(fmt.Errorf("locking the history of suites: %w", err), f.Close())
	}
	return f, nil
}

func openHistoryFile(dir string) (*os.File, error) {
	name := filepath.Join(dir, HistoryFile)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
}

// WritePage draws the page of the history into its folder.
func (h *History) WritePage() error {
	var page bytes.Buffer
	err := h.Page(&page)
	if err == nil {
		err = replaceFile(filepath.Join(h.Dir, PageFile), page.Bytes())
	}
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// Add appends the suite in dir, and copies the runs that it kept. A row that is there already is not added again. If
// other programs may add suites too, [LockHistory] comes before [OpenHistory].
func (h *History) Add(dir string) error {
	s, err := Read(dir)
	if err != nil {
		return err
	}
	night := s.Started.UTC()
	there := map[key]bool{} // all rows of a suite, unless the disk was full
	for _, r := range h.Records {
		if r.Night.Equal(night) {
			there[keyOf(r.Row)] = true
		}
	}
	s.Rows = slices.DeleteFunc(s.Rows, func(r Row) bool { return there[keyOf(r)] })
	if len(s.Rows) == 0 {
		return nil
	}
	folder := path.Join("nights", night.Format("20060102T150405.000Z"))
	if err := copyRuns(dir, filepath.Join(h.Dir, filepath.FromSlash(folder)), s.Rows); err != nil {
		return fmt.Errorf("adding the suite in %s: %w", dir, err)
	}
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	var added []Record
	for _, r := range s.Rows {
		if r.Run != "" {
			r.Run = path.Join(folder, r.Run)
		}
		record := Record{Night: night, Version: s.Version, Row: r}
		if err := lines.Encode(record); err != nil {
			return fmt.Errorf("adding the suite in %s: %w", dir, err)
		}
		added = append(added, record)
	}
	if err := h.append(b.Bytes()); err != nil {
		return fmt.Errorf("adding the suite in %s: %w", dir, err)
	}
	h.Records = append(h.Records, added...)
	return nil
}

// append writes lines at the end of the file, after the last complete line.
func (h *History) append(lines []byte) error {
	f, err := openHistoryFile(h.Dir)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(f)
	end := int64(bytes.LastIndexByte(text, '\n') + 1)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		if _, err = f.WriteAt(lines, end); err != nil {
			err = errors.Join(err, f.Truncate(end))
		}
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// night is all records of one suite, as one column of the page.
type night struct {
	start   time.Time
	records []Record
}

// nights are the last maxNights suites, in order.
func (h History) nights() []night {
	var all []night
	sorted := slices.Clone(h.Records)
	slices.SortStableFunc(sorted, func(a, b Record) int { return a.Night.Compare(b.Night) })
	for _, r := range sorted {
		if len(all) == 0 || !all[len(all)-1].start.Equal(r.Night) {
			all = append(all, night{start: r.Night.UTC()})
		}
		last := &all[len(all)-1]
		last.records = append(last.records, r)
	}
	return all[max(0, len(all)-maxNights):]
}

// latest are the rows of the last suite with each backend, of the last maxNights suites. A row without a backend, such
// as one that was not run, is of the backend of its suite.
func (h History) latest() (s Suite) {
	last := h.lastWith()
	for _, n := range h.nights() {
		for _, r := range n.records {
			if n.start.Equal(last[cmp.Or(r.Backend, n.backend())]) {
				s.Rows = append(s.Rows, r.Row)
			}
		}
	}
	return s
}

// backend is the first backend of a suite; "": no row has one.
func (n night) backend() string {
	for _, r := range n.records {
		if r.Backend != "" {
			return r.Backend
		}
	}
	return ""
}

// lastWith is the start of the last suite with each backend. One in which no row has a backend counts only if it is the
// last of all.
func (h History) lastWith() map[string]time.Time {
	last := map[string]time.Time{}
	for _, n := range h.nights() {
		delete(last, "")
		for _, r := range n.records {
			last[cmp.Or(r.Backend, n.backend())] = n.start
		}
	}
	return last
}

func recordRows(records []Record) (rows []Row) {
	for _, r := range records {
		rows = append(rows, r.Row)
	}
	return rows
}
