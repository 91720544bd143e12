package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/lockchaos/lockchaos/history/internal/edn"
	"github.com/lockchaos/lockchaos/history/internal/input"
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
	b := NewBuilder()
	problems, err := Scan(r, name, b.Add)
	if err != nil {
		return nil, err
	}
	return b.History(problems...), nil
}

// ReadSamples reads a witness.jsonl. A torn last line is a [Problem] and ignored; any other line that is not a sample
// is a [*LineError].
func ReadSamples(path string) ([]Sample, []Problem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a witness: %w", err)
	}
	defer f.Close()
	var samples []Sample
	lines := input.NewLines(bufio.NewReaderSize(f, 256<<10))
	for {
		line, whole, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return samples, nil, nil
		}
		if err != nil {
			return samples, nil, lineError(path, lines.N, err)
		}
		var s Sample
		if err = json.Unmarshal(line, &s); err == nil && bytes.ContainsFunc(line, unusual) {
			_, err = edn.CheckJSON(line)
		}
		if err != nil && !whole {
			return samples, []Problem{tornLine(lines.N, len(line))}, nil
		}
		if err != nil {
			return samples, nil, lineError(path, lines.N, err)
		}
		samples = append(samples, s)
	}
}

// unusual reports whether text with c may be no JSON although encoding/json reads it: escapes, and all but ASCII.
func unusual(c rune) bool { return c == '\\' || c >= utf8.RuneSelf }
