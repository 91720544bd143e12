package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/lockchaos/lockchaos/checker"
)

// FileSum identifies the content of a file.
type FileSum struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Verdict is verdict.json.
type Verdict struct {
	Format int `json:"format"` // version of this layout
	checker.Judgement
	Judged map[string]FileSum `json:"judged_files,omitempty"` // by name
}

// WriteVerdict replaces verdict.json atomically. The file also identifies the history and the samples as they are now:
// see [Dir.ChangedSinceVerdict].
func (d *Dir) WriteVerdict(j checker.Judgement) error {
	sums, err := d.sums()
	if err != nil {
		return err
	}
	return d.writeJSON(VerdictFile, Verdict{Format, j, sums})
}

// ReadVerdict reads verdict.json. The error is fs.ErrNotExist if the run has not been judged.
func (d *Dir) ReadVerdict() (checker.Judgement, error) {
	var v Verdict
	err := d.readJSON(VerdictFile, &v)
	return v.Judgement, err
}

// ChangedSinceVerdict is the name of a file that has changed since verdict.json; "" if there is none, or if the verdict
// does not identify its files.
func (d *Dir) ChangedSinceVerdict() (string, error) {
	var v Verdict
	if err := d.readJSON(VerdictFile, &v); err != nil || v.Judged == nil {
		return "", err
	}
	now, err := d.sums()
	if err != nil {
		return "", err
	}
	for _, name := range judgedFiles() {
		if now[name] != v.Judged[name] {
			return name, nil
		}
	}
	return "", nil
}

func judgedFiles() []string { return []string{HistoryFile, WitnessFile} }

// sums are the checksums of the existing files.
func (d *Dir) sums() (map[string]FileSum, error) {
	sums := map[string]FileSum{}
	for _, name := range judgedFiles() {
		sum, err := sumOf(d.File(name))
		switch {
		case err == nil:
			sums[name] = sum
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("reading %s: %w", d.File(name), err)
		}
	}
	return sums, nil
}

func sumOf(path string) (FileSum, error) {
	f, err := os.Open(path)
	if err != nil {
		return FileSum{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return FileSum{n, hex.EncodeToString(h.Sum(nil))}, err
}
