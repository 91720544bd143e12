// Package scenarios holds the named scenarios, as YAML files beside this one,
// and reads those of users. A scenario is a topology, a lock, a workload,
// faults and what is expected of them; it is data, and runs nothing.
//
// Read [Scenario] and [Load] first.
package scenarios

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/workloads"
)

// Scenario is one recipe, as its YAML says.
type Scenario struct {
	Name     string            `yaml:"name"`
	Summary  string            `yaml:"summary"`          // one sentence: what happens
	Source   string            `yaml:"source,omitempty"` // where the claim comes from
	About    string            `yaml:"about,omitempty"`  // a paragraph for the reader
	Topology cluster.Topology  `yaml:"topology"`
	Lock     string            `yaml:"lock"`
	Options  map[string]string `yaml:"options,omitempty"` // of the lock
	Workload workloads.Params  `yaml:"workload,omitempty"`
	Faults   []Step            `yaml:"faults,omitempty"`
	Keep     int               `yaml:"keep,omitempty"` // servers that no faults may take away together; 0: all may go
	Duration time.Duration     `yaml:"duration"`       // how long clients start new operations
	Expect   map[string]string `yaml:"expect,omitempty"`
}

// Step is one fault of the plan. Steps are armed in order: a step with a
// trigger waits until all steps above it have been injected.
type Step struct {
	After  time.Duration `yaml:"after,omitempty" json:"after_ns,omitempty"`   // since the run began; with when: not before
	When   string        `yaml:"when,omitempty" json:"when,omitempty"`        // a trigger; "": none
	Delay  time.Duration `yaml:"delay,omitempty" json:"delay_ns,omitempty"`   // since the trigger
	Fault  string        `yaml:"fault,omitempty" json:"fault"`                // name in the catalogue
	Target string        `yaml:"target,omitempty" json:"target"`              // word or name; "": the fault's default
	For    time.Duration `yaml:"for,omitempty" json:"for_ns,omitempty"`       // until healed; 0: at the end, or by itself
	Amount time.Duration `yaml:"amount,omitempty" json:"amount_ns,omitempty"` // how much of it; 0: the fault's default
	Most   int           `yaml:"-" json:"most,omitempty"`                     // drawn: faults at once; 0: any number
	Random *Random       `yaml:"random,omitempty" json:"-"`                   // instead of fault: drawn from the seed
}

// Random asks for faults drawn from the seed, all through the run.
type Random struct {
	Of    []string      `yaml:"of"`              // names to draw from
	Every time.Duration `yaml:"every"`           // one in each such stretch, at a random instant
	For   time.Duration `yaml:"for,omitempty"`   // healed after so long; 0 is half of Every
	Until time.Duration `yaml:"until,omitempty"` // none later; 0 is the duration
	Most  int           `yaml:"most,omitempty"`  // no more than so many drawn faults at once; 0 is any number
}

// Triggers are the words for Step.When.
//
//nolint:gochecknoglobals // a table, never changed
var triggers = []string{"acquired", "waiting", "renewed", "releasing", "released", "promoted", "lost"}

// Triggers are the words that a step's when understands.
func Triggers() []string { return append([]string(nil), triggers...) }
