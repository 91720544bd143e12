package suite

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
)

// Quarantine is the scenarios whose rows do not decide the exit code for now.
type Quarantine []Exemption

// Exemption is one entry of a quarantine file.
type Exemption struct {
	Scenario string `yaml:"scenario"`
	Term     `yaml:",inline"`
}

// Term says until when something does not count, and who removes the entry that says so.
type Term struct {
	Owner  string `yaml:"owner"`
	Until  string `yaml:"until"`            // the last day, such as 2026-12-31 (UTC)
	Reason string `yaml:"reason,omitempty"` // an issue, for example
}

// ReadQuarantine reads a file with a list of exemptions. Every entry must name a known scenario, an owner and a day.
func ReadQuarantine(file string, known []string) (Quarantine, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the quarantine: %w", err)
	}
	var q Quarantine
	if err := yaml.UnmarshalWithOptions(text, &q, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("reading the quarantine %s: %w", file, err)
	}
	for i, e := range q {
		if err := e.validate(known); err != nil {
			return nil, fmt.Errorf("reading the quarantine %s: entry %d: %w", file, i+1, err)
		}
	}
	return q, nil
}

func (e Exemption) validate(known []string) error {
	if !slices.Contains(known, e.Scenario) {
		return fmt.Errorf("there is no scenario %q", e.Scenario)
	}
	return e.Validate()
}

// Validate reports a missing owner, or an end that is no day.
func (t Term) Validate() error {
	if t.Owner == "" {
		return errors.New("owner is missing: name who is to remove the entry")
	}
	_, err := t.end()
	return err
}

// end is the first instant after the term.
func (t Term) end() (time.Time, error) {
	day, err := time.Parse(time.DateOnly, t.Until)
	if err != nil {
		return day, fmt.Errorf("until: expected a day such as 2026-12-31, got %q", t.Until)
	}
	return day.AddDate(0, 0, 1), nil
}

// At is the term as text; empty: it is over at that instant.
func (t Term) At(now time.Time) string {
	if end, err := t.end(); err != nil || !now.Before(end) {
		return ""
	}
	return fmt.Sprintf("%s until %s", t.Owner, t.Until)
}

// of returns the exemption of a scenario at an instant as text; empty: none is in force.
func (q Quarantine) of(scenario string, now time.Time) string {
	for _, e := range q {
		if term := e.At(now); e.Scenario == scenario && term != "" {
			return term
		}
	}
	return ""
}

// expired are notes about exemptions that are over.
func (q Quarantine) expired(now time.Time) (notes []string) {
	for _, e := range q {
		if e.At(now) == "" {
			notes = append(notes, fmt.Sprintf("the quarantine of %s (owner %s) expired on %s; its verdict counts again",
				e.Scenario, e.Owner, e.Until))
		}
	}
	return notes
}
