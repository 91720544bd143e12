package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// WriteManifest replaces run.json atomically: a reader finds the old one or the new one, also after a kill. A Format
// of 0 is written as [Format].
func (d *Dir) WriteManifest(m Manifest) error {
	if m.Format == 0 {
		m.Format = Format
	}
	return d.writeJSON(ManifestFile, m)
}

// ReadManifest reads run.json. The error is fs.ErrNotExist if it does not exist.
func (d *Dir) ReadManifest() (Manifest, error) {
	var found struct {
		Format int `json:"format"`
	}
	if err := d.readJSON(ManifestFile, &found); err != nil {
		return Manifest{}, err
	}
	if found.Format != Format {
		return Manifest{}, fmt.Errorf("reading %s: its format is version %d, and this program reads version %d; "+
			"use the program that wrote it (see versions in run.json)", d.File(ManifestFile), found.Format, Format)
	}
	var m Manifest
	err := d.readJSON(ManifestFile, &m)
	return m, err
}

// Samples returns the samples of the witness file that can be read; nil if there are none. Without samples some
// properties of a history cannot be judged.
func (d *Dir) Samples() []history.Sample {
	samples, _, _ := history.ReadSamples(d.File(WitnessFile))
	return samples
}

// SamplesUntil returns the samples up to an instant, such as the end of a history. What clients did later is not known:
// a full disk may have ended the history before the samples.
func SamplesUntil(samples []history.Sample, end time.Duration) []history.Sample {
	later := func(s history.Sample) bool { return s.Time > end }
	if !slices.ContainsFunc(samples, later) {
		return samples
	}
	return slices.DeleteFunc(slices.Clone(samples), later)
}

// WriteFile replaces the file of that name atomically.
func (d *Dir) WriteFile(name string, data []byte) error {
	if name != filepath.Base(name) {
		return fmt.Errorf("writing %q in %s: the name of a file in a run directory has no slash", name, d.Path)
	}
	f, err := os.CreateTemp(d.Path, "."+name+".*")
	if err != nil {
		return explain("writing "+d.File(name), err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), d.File(name))
	}
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok { // of the file, and not of a name that nobody knows
			err = &fs.PathError{Op: at.Op, Path: d.File(name), Err: at.Err}
		}
		rerr := os.Remove(f.Name())
		if errors.Is(rerr, fs.ErrNotExist) {
			rerr = nil
		}
		return explain("writing "+d.File(name), errors.Join(err, rerr))
	}
	return nil
}

func (d *Dir) writeJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	return d.WriteFile(name, append(data, '\n'))
}

func (d *Dir) readJSON(name string, v any) error {
	data, err := os.ReadFile(d.File(name))
	if err != nil {
		return fmt.Errorf("reading %s: %w", d.File(name), err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("reading %s: not JSON as this program writes it, or truncated: %w", d.File(name), err)
	}
	return nil
}
