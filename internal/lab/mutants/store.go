package mutants

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Report is a measurement of all rows.
type Report struct {
	Budget   time.Duration     `json:"budget_ns"` // processor time for each row
	Coverage Coverage          `json:"coverage"`
	Results  map[string]Result `json:"results"` // by row
}

//go:embed results.json
var stored []byte

// Stored is the measurement that docs/contributors/detection.md shows.
func Stored() (Report, error) {
	var r Report
	if err := json.Unmarshal(stored, &r); err != nil {
		return r, fmt.Errorf("reading the stored measurement: %w", err)
	}
	return r, nil
}

// LoadReport reads a measurement; a missing one is empty.
func LoadReport(name string) (Report, error) {
	r := Report{Results: map[string]Result{}}
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("reading a measurement: %w", err)
	}
	return r, nil
}

// Save writes the measurement.
func (r Report) Save(name string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(name, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing a measurement: %w", err)
	}
	return nil
}
