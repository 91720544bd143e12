package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFile reads and pairs a history.jsonl. What had to be repaired is in the
// result's Problems; a line that is no event is a [*LineError]. Clients is left
// 0, because a history does not tell it: set it from run.json if that is known.
func ReadFile(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a history: %w", err)
	}
	defer f.Close()
	return ReadAll(f, path)
}

// ReadAll reads and pairs the JSON lines of r; name is for error messages.
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
	b.AddProblems(s.Problems())
	return b.History(), nil
}

// ReadSamples reads witness.jsonl. A torn last line is a problem and is ignored.
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
			text := fmt.Sprintf("the last line of the witness is torn off after %d bytes and was ignored", len(line))
			return samples, []Problem{{Index: -1, Line: lines.n, Text: text}}, nil
		}
		if err != nil {
			return samples, nil, &LineError{File: name, Line: lines.n, Column: column(err), Err: err}
		}
		samples = append(samples, s)
	}
}

// ReadSamplesFile reads a witness.jsonl by its path.
func ReadSamplesFile(path string) ([]Sample, []Problem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a witness: %w", err)
	}
	defer f.Close()
	return ReadSamples(f, path)
}
