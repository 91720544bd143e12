package page

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/lockchaos/lockchaos/reports/evidence"
)

// maxCited bounds how many recorded events the page quotes.
const maxCited = 400

// maxCitedLine bounds how many bytes of an event the page quotes.
const maxCitedLine = 2000

// CitedEvents are the indices of events that the page refers to, the important ones first.
func CitedEvents(r *evidence.Run) map[int]bool {
	cited := map[int]bool{}
	add := func(index int) {
		if index >= 0 && len(cited) < maxCited {
			cited[index] = true
		}
	}
	for _, s := range r.Story.Steps {
		add(s.Event)
	}
	for _, p := range r.Story.Proofs {
		for _, from := range p.From {
			add(from.Event)
		}
	}
	for _, v := range r.Violations() {
		for _, e := range v.Events {
			add(e)
		}
	}
	for _, f := range r.Faults {
		add(int(f.Event))
	}
	for _, f := range r.Missed {
		add(int(f.Index))
	}
	return cited
}

// CitedLines reads the lines of history.jsonl with those indices, unparsed: they show the record, not how this program
// reads it.
func CitedLines(path string, want map[int]bool) (map[int]string, error) {
	found := map[int]string{}
	if len(want) == 0 {
		return found, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading cited events: %w", err)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() && len(found) < len(want) {
		index, ok := indexOf(lines.Bytes())
		if ok && want[index] {
			found[index] = string(lines.Bytes()[:min(len(lines.Bytes()), maxCitedLine)])
		}
	}
	// The only error of the scanner is a line of more than 16 MiB, which history.ReadFile reports as a problem.
	return found, f.Close()
}

// indexOf parses the index of an event, which the recorder writes first, without
// decoding the rest of its line.
func indexOf(line []byte) (int, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"index":`))
	number, _, _ := bytes.Cut(rest, []byte(","))
	index, err := strconv.Atoi(string(number))
	return index, ok && err == nil
}
