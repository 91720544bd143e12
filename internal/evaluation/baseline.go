package evaluation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/suite"
)

// Baseline are findings that are known and accepted for now: they do not decide the exit code.
type Baseline []Acceptance

// Acceptance accepts the findings of one cause.
type Acceptance struct {
	Cause    string           `json:"cause"`              // as test.json has it
	Property checker.Property `json:"property,omitempty"` // empty: any
	Owner    string           `json:"owner"`              // who removes the entry
	Until    string           `json:"until"`              // the last day, such as 2026-12-31 (UTC)
	Reason   string           `json:"reason,omitempty"`   // an issue, for example
}

// baselineFile is the content of the file.
type baselineFile struct {
	Accept Baseline `json:"accept"`
}

// ReadBaseline reads a JSON file: {"accept": [{"cause": …, "owner": …, "until": …}]}.
func ReadBaseline(file string) (Baseline, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var b baselineFile
	if err := d.Decode(&b); err != nil {
		line := 1 + bytes.Count(text[:min(d.InputOffset(), int64(len(text)))], []byte("\n"))
		return nil, fmt.Errorf("reading the baseline %s: near line %d: %w", file, line, err)
	}
	for i, a := range b.Accept {
		if err := a.validate(); err != nil {
			return nil, fmt.Errorf("reading the baseline %s: entry %d: %w", file, i+1, err)
		}
	}
	return b.Accept, nil
}

func (a Acceptance) validate() error {
	switch {
	case a.Cause == "":
		return errors.New("cause is missing: copy it from test.json")
	case a.Owner == "":
		return errors.New("owner is missing: name who is to remove the entry")
	}
	_, err := a.end()
	return err
}

// end is the first instant after the acceptance.
func (a Acceptance) end() (time.Time, error) { return suite.After(a.Until) }

// of is the acceptance of a finding at an instant as text; empty: there is none.
func (b Baseline) of(f Finding, now time.Time) string {
	for _, a := range b {
		end, err := a.end()
		if err == nil && now.Before(end) && f.Own && a.Cause == f.Cause && (a.Property == "" || a.Property == f.Property) {
			return fmt.Sprintf("%s until %s", a.Owner, a.Until)
		}
	}
	return ""
}

// expired are notes about acceptances that are over.
func (b Baseline) expired(now time.Time) (notes []string) {
	for _, a := range b {
		if end, err := a.end(); err == nil && !now.Before(end) {
			notes = append(notes, fmt.Sprintf("the acceptance of %s (owner %s) expired on %s; the finding counts again", a.Cause,
				a.Owner, a.Until))
		}
	}
	return notes
}
