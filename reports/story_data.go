package reports

import "time"

// story is a run in words. It is generated from the data of the run and claims
// nothing else. Names in its texts are in `backquotes`.
type story struct {
	Sentence string       `json:"sentence"`         // the reason for the verdict
	Cause    string       `json:"cause,omitempty"`  // the mechanism of an unsafe run, see [mechanisms]
	Proofs   []proof      `json:"proofs,omitempty"` // where the numbers of the sentence are from
	Steps    []storyStep  `json:"steps,omitempty"`  // cause and effect in order of time; six at most, or all that the sentence names
	Facts    []string     `json:"facts,omitempty"`  // numbers, the most important first
	Advice   []adviceItem `json:"advice,omitempty"`
	Repeat   string       `json:"repeat,omitempty"` // the command that repeats the run
}

// storyStep is one step from cause to effect.
type storyStep struct {
	N     int           `json:"n"` // from 1; also the marker in the timeline
	Time  time.Duration `json:"time_ns"`
	Event int           `json:"event"` // index in the history; -1: derived from samples
	Text  string        `json:"text"`

	weight int  // of more than maxSteps, the heaviest are kept
	named  bool // the headline names it: kept
}

// adviceItem is something that would have prevented a violation.
type adviceItem struct {
	Text     string `json:"text"`
	Measured bool   `json:"measured"`       // this run's data shows it; false: general advice
	Cost     string `json:"cost,omitempty"` // what it costs
}
