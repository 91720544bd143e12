package evaluation

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/suite"
)

// Baseline lists known findings that do not fail the test for now.
type Baseline []Acceptance

// Acceptance accepts the findings of one cause.
type Acceptance struct {
	Cause      string           `yaml:"cause"`              // as in test.json
	Property   checker.Property `yaml:"property,omitempty"` // empty: any
	suite.Term `yaml:",inline"`
}

// baselineFile is the content of the file.
type baselineFile struct {
	Accept Baseline `yaml:"accept"`
}

// ReadBaseline reads a JSON file: {"accept": [{"cause": …, "owner": …, "until": …}]}. It is read as YAML, of which JSON
// is a part, for errors with the place in the file.
func ReadBaseline(file string) (Baseline, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	var b baselineFile
	if err := yaml.UnmarshalWithOptions(text, &b, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("reading the baseline %s: %w", file, err)
	}
	for i, a := range b.Accept {
		if err := a.validate(); err != nil {
			return nil, fmt.Errorf("reading the baseline %s: entry %d: %w", file, i+1, err)
		}
	}
	return b.Accept, nil
}

func (a Acceptance) validate() error {
	if a.Cause == "" {
		return errors.New("cause is missing: copy it from test.json")
	}
	if _, ok := checker.Find(a.Property); !ok && a.Property != "" {
		return fmt.Errorf("there is no property %q", a.Property)
	}
	return a.Validate()
}

// accepts reports whether an entry is about a finding.
func (a Acceptance) accepts(f Finding) bool {
	return f.Own && a.Cause == f.ID() && (a.Property == "" || a.Property == f.Property)
}

// acceptance is the owner and the end of the entry that accepts a finding at an instant; empty: there is none.
func (b Baseline) acceptance(f Finding, now time.Time) string {
	for _, a := range b {
		if term := a.At(now); term != "" && a.accepts(f) {
			return term
		}
	}
	return ""
}

// notes are about entries that are over, and about entries without a finding.
func (b Baseline) notes(found []Finding, now time.Time) (notes []string) {
	for _, a := range b {
		switch {
		case a.At(now) == "":
			notes = append(notes, fmt.Sprintf("the acceptance of %s (owner %s) expired on %s; the finding counts again", a.Cause,
				a.Owner, a.Until))
		case !slices.ContainsFunc(found, a.accepts):
			notes = append(notes, fmt.Sprintf("the baseline accepts %s (owner %s), which no run showed", a.Cause, a.Owner))
		}
	}
	return notes
}
