package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// ReadFile reads a history.jsonl. Repairs are reported in Problems; a line that is not an event is a
// [*LineError]. Clients is 0, because a history does not contain it: set it from run.json.
func ReadFile(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a history: %w", err)
	}
	defer f.Close()
	return ReadAll(f, path)
}

// ReadAll is [ReadFile] of the JSON lines of r; name is for error messages.
func ReadAll(r io.Reader, name string) (*History, error) {
	s := NewScanner(r)
	s.File = name
	b := NewBuilder()
	for s.Next() {
		if err := b.Add(s.Event(), s.Line()); err != nil {
			return nil, err
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	b.addProblems(s.Problems())
	return b.History(), nil
}

// SamplesUntil returns the samples up to an instant, such as the end of a history. What clients did later is not known:
// a full disk may have ended the history before the samples.
func SamplesUntil(samples []Sample, end time.Duration) []Sample {
	later := func(s Sample) bool { return s.Time > end }
	if !slices.ContainsFunc(samples, later) {
		return samples
	}
	return slices.DeleteFunc(slices.Clone(samples), later)
}

// ReadSamples reads a witness.jsonl; name is for error messages. A torn last line is a [Problem] and ignored; any
// other line that is not a sample is a [*LineError].
func ReadSamples(r io.Reader, name string) ([]Sample, []Problem, error) {
	var samples []Sample
	lines := NewScanner(r).lines
	for {
		line, whole, err := lines.next()
		if errors.Is(err, io.EOF) {
			return samples, nil, nil
		}
		if err != nil {
			return samples, nil, &LineError{File: name, Line: lines.n, Err: err}
		}
		var s Sample
		err = json.Unmarshal(line, &s)
		if err != nil && !whole {
			return samples, []Problem{tornLine(lines.n, len(line))}, nil
		}
		if err != nil {
			return samples, nil, &LineError{File: name, Line: lines.n, Column: column(err), Err: err}
		}
		samples = append(samples, s)
	}
}

// ReadSamplesFile is [ReadSamples] of a file.
func ReadSamplesFile(path string) ([]Sample, []Problem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a witness: %w", err)
	}
	defer f.Close()
	return ReadSamples(f, path)
}
