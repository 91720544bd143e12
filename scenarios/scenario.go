// Package scenarios loads scenarios; its Go API is not a promise, the YAML of a scenario is documented in
// docs/reference/scenarios.md. A scenario is a topology, a lock, a workload, faults, and the expected outcome. The
// named scenarios are stories, each a file below stories, and probes, each a row of a file in probes.
//
// Read [Scenario] and [Load] first.
package scenarios

import (
	"errors"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// Scenario is one scenario, as its YAML has it.
type Scenario struct {
	Name    string `yaml:"name"`
	Summary string `yaml:"summary"` // the events, in one sentence
	// Production is its meaning in production, in one line.
	Production string            `yaml:"production,omitempty"`
	Source     string            `yaml:"source,omitempty"` // of the claim
	About      string            `yaml:"about,omitempty"`  // a paragraph for people
	Topology   cluster.Topology  `yaml:"topology"`
	Lock       string            `yaml:"lock"`
	Options    map[string]string `yaml:"options,omitempty"` // of the lock
	Locks      []Group           `yaml:"locks,omitempty"`   // of the last clients, instead of Lock
	Workload   workload.Params   `yaml:"workload,omitempty"`
	Faults     []Step            `yaml:"faults,omitempty"`
	Keep       int               `yaml:"keep,omitempty"` // servers that must stay up; 0: none
	Duration   time.Duration     `yaml:"duration"`       // how long clients start new operations
	// InitTimeout is within which a client must reply to init; 0: InitTimeout.
	InitTimeout time.Duration `yaml:"init_timeout,omitempty"`
	Expect      Expect        `yaml:"expect,omitempty"`
	Thresholds  []string      `yaml:"thresholds,omitempty"` // such as "acquire.p99 < 2s", see stats.ParseThreshold
	Twin        *Twin         `yaml:"twin,omitempty"`       // nil: none
}

// Group is clients that use another lock than the others, on the same keys.
type Group struct {
	Lock    string            `yaml:"lock"`
	Options map[string]string `yaml:"options,omitempty"`
	Clients int               `yaml:"clients"`
}

// LockOf is the lock of client i of n, and its options.
func (s Scenario) LockOf(i, n int) (lock string, options map[string]string) {
	for j := len(s.Locks) - 1; j >= 0; j-- {
		if n -= s.Locks[j].Clients; i >= n {
			return s.Locks[j].Lock, s.Locks[j].Options
		}
	}
	return s.Lock, s.Options
}

// LockNames are the names of all locks of a run, key lock's first.
func (s Scenario) LockNames() []string {
	names := []string{s.Lock}
	for _, g := range s.Locks {
		names = append(names, g.Lock)
	}
	return names
}

// LockText is the locks of all clients, for people.
func (s Scenario) LockText() string { return strings.Join(s.LockNames(), " + ") }

// FaultNames are the names of all faults that s may inject.
func (s Scenario) FaultNames() (names []string) {
	for _, step := range s.Faults {
		if step.Random != nil {
			names = append(names, step.Random.Of...)
			continue
		}
		names = append(names, step.Fault)
	}
	return names
}

// InitTimeout is the default of Scenario.InitTimeout.
const InitTimeout = 15 * time.Second

// Twin is the difference of a safe run with the same faults: a measured way to prevent the violation. chaos run
// simulates it with the same seed after an unsafe run.
type Twin struct {
	Scenario string   `yaml:"scenario,omitempty"` // another scenario of the catalog; "": this one
	Set      []string `yaml:"set,omitempty"`      // overrides, as for --set
}

// LoadTwin is the twin of s.
func (s Scenario) LoadTwin() (Scenario, error) {
	switch {
	case s.Twin == nil:
		return Scenario{}, errors.New("the scenario has no twin")
	case s.Twin.Scenario != "":
		return Load(s.Twin.Scenario, Sets(s.Twin.Set)...)
	}
	return Parse([]byte(s.YAML()), Sets(s.Twin.Set)...)
}

// Step is one fault of the plan. Steps are armed in order: a step with a trigger waits until all steps before it have
// been injected.
type Step struct {
	After  time.Duration `yaml:"after,omitempty" json:"after_ns,omitempty"`   // since the start; with when: not before
	When   string        `yaml:"when,omitempty" json:"when,omitempty"`        // a trigger; "": none
	Delay  time.Duration `yaml:"delay,omitempty" json:"delay_ns,omitempty"`   // since the trigger
	Fault  string        `yaml:"fault,omitempty" json:"fault"`                // name in the catalog
	Target string        `yaml:"target,omitempty" json:"target"`              // word or name; "": the fault's default
	For    time.Duration `yaml:"for,omitempty" json:"for_ns,omitempty"`       // until healed; 0: at the end, or by itself
	Amount time.Duration `yaml:"amount,omitempty" json:"amount_ns,omitempty"` // how much of it; 0: the fault's default
	Hits   string        `yaml:"hits,omitempty" json:"hits,omitempty"`        // the request that it must hit; "": any
	// Optional: armed from After on, whatever the other steps do, and the run may be conclusive without its effect.
	Optional bool    `yaml:"optional,omitempty" json:"optional,omitempty"`
	Most     int     `yaml:"-" json:"most,omitempty"`   // of a random step: see [Random]
	Random   *Random `yaml:"random,omitempty" json:"-"` // instead of fault
}

// Random is faults drawn from the seed, throughout the run.
type Random struct {
	Of    []string      `yaml:"of"`              // faults to draw from
	Every time.Duration `yaml:"every"`           // one in each such interval, at a random instant
	For   time.Duration `yaml:"for,omitempty"`   // until healed; 0 is half of Every
	Until time.Duration `yaml:"until,omitempty"` // none later; 0 is the duration
	Most  int           `yaml:"most,omitempty"`  // random faults in force at once; 0 is any number
}

// Triggers, for Step.When.
const (
	Requested = "requested" // a client requests a lock
	Waiting   = "waiting"   // a client waits for a lock that another one holds
	Granted   = "granted"   // a server was seen to have granted a lock, and the client has no reply yet
	Acquired  = "acquired"  // a lock was granted, and the client has the reply
	Renewed   = "renewed"   // a lease was extended: the client says so, or the time to live at a server has grown
	Releasing = "releasing" // a client requests a release
	Released  = "released"  // a lock was released
	Promoted  = "promoted"  // a node became master
	Lost      = "lost"      // a client lost its hold
)

func triggers() []string {
	return []string{Requested, Waiting, Granted, Acquired, Renewed, Releasing, Released, Promoted, Lost}
}
