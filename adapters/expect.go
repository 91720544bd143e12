package adapters

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// expectFile has the expected outcomes of an adapter's locks: lines of tab-separated kind, scenario, outcome, violated
// properties (separated by commas) and why. Lines that begin with # are comments.
const expectFile = "expect.tsv"

// Expectation is a line of expect.tsv.
type Expectation struct {
	Lock       string // LIBRARY/KIND
	Scenario   string
	Outcome    string   // safe, outlived lease, broken promise, violated; several are separated by " or "
	Properties []string // that are violated, whatever else is
	Why        string
}

// Allows reports whether an outcome, such as "safe" or "broken promise", is an expected one.
func (e Expectation) Allows(outcome string) bool {
	return slices.Contains(strings.Split(e.Outcome, " or "), outcome)
}

// Expected reads the adapter's expectations.
func (a Adapter) Expected() (all []Expectation, err error) {
	text, err := files.ReadFile(path.Join(a.Library, expectFile))
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 5 {
			return nil, fmt.Errorf("adapters/%s/%s:%d: expected 5 fields, got %d", a.Library, expectFile, n+1, len(fields))
		}
		e := Expectation{Lock: a.Library + "/" + fields[0], Scenario: fields[1], Outcome: fields[2], Why: fields[4]}
		if fields[3] != "" {
			e.Properties = strings.Split(fields[3], ",")
		}
		all = append(all, e)
	}
	return all, nil
}
