package evidence

import "time"

// Story is a run in words. It is generated from the data of the run and claims
// nothing else. Names in its texts are in `backquotes`.
type Story struct {
	Sentence string   `json:"sentence"`         // the reason for the verdict
	Cause    string   `json:"cause,omitempty"`  // the mechanism of an unsafe run, see package cause
	Proofs   []Proof  `json:"proofs,omitempty"` // where the numbers of the sentence are from
	Steps    []Step   `json:"steps,omitempty"`  // cause and effect in order of time; six at most, or all that the sentence names
	Facts    []string `json:"facts,omitempty"`  // numbers, the most important first
	Advice   []Advice `json:"advice,omitempty"`
	Repeat   string   `json:"repeat,omitempty"` // the command that repeats the run
}

// Step is one step from cause to effect.
type Step struct {
	N     int           `json:"n"` // from 1; also the marker in the timeline
	Time  time.Duration `json:"time_ns"`
	Event int           `json:"event"` // index in the history; -1: derived from samples
	Text  string        `json:"text"`

	Weight int  `json:"-"` // of more than maxSteps, the heaviest are kept
	Named  bool `json:"-"` // the headline names it: kept
}

// Advice is something that would have prevented a violation.
type Advice struct {
	Text     string `json:"text"`
	Measured bool   `json:"measured"`       // this run's data shows it; false: general advice
	Cost     string `json:"cost,omitempty"` // its cost
}
