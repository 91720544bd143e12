package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lockchaos/lockchaos/internal/format"
)

// The files of a suite, in its directory.
const (
	JSONFile        = "suite.json"
	junitFile       = "junit.xml"
	summaryFile     = "summary.md"
	annotationsFile = "annotations.txt" // workflow commands of GitHub
	PageFile        = "index.html"
	metricsFile     = "metrics.prom" // for Prometheus' textfile collector
)

// Write writes the files of s to dir, which it makes if necessary.
func (s Suite) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the results of the suite: %w", err)
	}
	for _, file := range []struct {
		name  string
		write func(s Suite, w io.Writer) error
	}{
		{JSONFile, Suite.JSON}, {junitFile, Suite.JUnit}, {summaryFile, Suite.Markdown},
		{annotationsFile, Suite.Annotations}, {PageFile, Suite.Page},
		{metricsFile, Suite.OpenMetrics},
	} {
		if err := WriteFile(dir, file.name, func(w io.Writer) error { return file.write(s, w) }); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(dir, ProgressFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the progress of the suite: %w", err)
	}
	return nil
}

// WriteFile writes a file in dir as a whole: a reader never sees a part of it, and a full disk leaves the old one.
func WriteFile(dir, name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	err := write(&b)
	if err == nil {
		err = replaceFile(filepath.Join(dir, name), b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// replaceFile replaces a file at once: a reader never sees a part of it, and a full disk leaves the old one.
func replaceFile(file string, text []byte) error {
	next := file + ".new"
	err := os.WriteFile(next, text, 0o644)
	if err == nil {
		err = os.Rename(next, file)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}

// JSON writes s as suite.json has it.
func (s Suite) JSON(w io.Writer) error {
	return format.WriteJSON(w, s)
}

// Read reads the suite in dir.
func Read(dir string) (Suite, error) {
	var s Suite
	text, err := os.ReadFile(filepath.Join(dir, JSONFile))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, fmt.Errorf("%s is not the directory of a suite: %w", dir, err)
	case err != nil:
		return s, fmt.Errorf("reading the suite in %s: %w", dir, err)
	case s.Format != Format:
		return s, formatError(dir, s.Format)
	}
	return s, nil
}

func formatError(dir string, format int) error {
	if format == 0 {
		return fmt.Errorf("reading the suite in %s: it has no field \"format\", so chaos suite did not write it", dir)
	}
	return fmt.Errorf("reading the suite in %s: format %d; this program reads format %d", dir, format, Format)
}
