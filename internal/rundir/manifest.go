// Package rundir is the directory of one run: its files, how they are written so that a kill loses nothing, and how
// they are read. Package runner makes runs, package reports shows them.
//
// Read [Manifest] (run.json) and [Dir] first.
package rundir

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/promise"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Names of the files in a run directory.
const (
	ManifestFile = "run.json"
	HistoryFile  = "history.jsonl"
	WitnessFile  = "witness.jsonl"
	VerdictFile  = "verdict.json"
	ReportFile   = "report.html"
	LinearFile   = "linearization.html"
	LogsDir      = "logs"
)

// State of a run.
type State string

// The states. A run that was killed remains Running.
const (
	Running     State = "running"
	Complete    State = "complete"
	Interrupted State = "interrupted" // by the user; its history is judged
	Broken      State = "broken"      // the harness or the environment failed; see Manifest.Failure
)

// Manifest is run.json: the scenario, the servers, and the end of the run.
type Manifest struct {
	Format   int    `json:"format"` // version of this layout
	ID       string `json:"id"`     // scenario/UTC time-seed
	State    State  `json:"state"`
	Failure  string `json:"failure,omitempty"` // with Broken
	Scenario string `json:"scenario"`          // name
	Summary  string `json:"summary"`           // one sentence, from the scenario
	Source   string `json:"source,omitempty"`  // of the claim, from the scenario
	// Production is the consequence of the expected verdict in production, in one line, from the scenario.
	Production string `json:"production,omitempty"`
	YAML       string `json:"yaml"` // the scenario after all overrides

	Seed      uint64              `json:"seed"`
	Variation scenarios.Variation `json:"variation,omitempty"`
	Delivery  string              `json:"delivery,omitempty"` // see backend.Facts
	Repeat    string              `json:"repeat"`             // the command that repeats the run

	Backend       string `json:"backend"`
	Deterministic bool   `json:"deterministic,omitempty"` // the same seed makes the same history
	Why           string `json:"why"`                     // why this backend
	Lock          string `json:"lock"`
	Workload      string `json:"workload"`
	Foreign       bool   `json:"foreign,omitempty"` // a lock from outside the catalog: how it stores holds is not known

	Can          promise.Set `json:"can,omitempty"`           // the promises of the lock
	NotExercised promise.Set `json:"not_exercised,omitempty"` // used by the workload, but not stated by the lock

	Clients int           `json:"clients"`
	Keys    []string      `json:"keys"`
	Lease   time.Duration `json:"lease_ns"` // of the workload; 0: the lock renews by itself

	Topology   cluster.Topology  `json:"topology"`
	Nodes      []cluster.Node    `json:"nodes"`
	Expect     map[string]string `json:"expect,omitempty"`     // verdict, class and outcome of each property
	Because    map[string]string `json:"because,omitempty"`    // why these outcomes of properties are expected
	Thresholds []string          `json:"thresholds,omitempty"` // see checker.Options
	Plan       []scenarios.Step  `json:"plan,omitempty"`
	Twin       *Twin             `json:"twin,omitempty"` // nil: the scenario has none, or the run was not unsafe
	Phases     []Phase           `json:"phases"`         // in order; the history's time 0 is the start of run
	Started    time.Time         `json:"started"`        // wall clock
	Finished   time.Time         `json:"finished"`       // wall clock
	Versions   map[string]string `json:"versions"`       // chaos, go, redis, os, kernel
	Machine    map[string]string `json:"machine"`        // cpus, memory

	// Slept is how long the machine slept during the run, or how far its clock was set forward. Real servers end leases
	// by that clock.
	Slept time.Duration `json:"slept_ns,omitempty"`
	// Late is how late a timer of the harness ran at most, without stalls: the machine was so busy that timers of the
	// clients may have been as late.
	Late time.Duration `json:"late_ns,omitempty"`
	// Elected names the server that was promoted because the harness did not run; "": none. Such a failover may lose a
	// grant.
	Elected string `json:"elected,omitempty"`
}

// Twin is how the scenario's twin ended (see scenarios.Twin), simulated with the same seed.
type Twin struct {
	Scenario string          `json:"scenario"`
	Summary  string          `json:"summary"`       // of that scenario
	Set      []string        `json:"set,omitempty"` // settings that it overrides
	Seed     uint64          `json:"seed"`
	Verdict  checker.Verdict `json:"verdict"`
	Sentence string          `json:"sentence"` // why
}

// PhaseRun is the name of the phase in which clients do their work. The history's time 0 is its start.
const PhaseRun = "run"

// Phase is a part of the run. Start and End count from the start of the command.
type Phase struct {
	Name  string        `json:"name"` // start, run, heal, judge
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
}

// MayBeDown is how many servers may be down at the same time without excusing the lock: of a quorum a minority, else
// none.
func (m Manifest) MayBeDown() int {
	if m.Topology.Kind != cluster.Quorum {
		return 0
	}
	return (m.Topology.Masters - 1) / 2
}

// queueDelay is how long after its request a waiter certainly is in the wait queue, also on a busy machine.
const queueDelay = 500 * time.Millisecond

// reportDelay is how late a machine may let a client report a loss, if the harness measured no longer delay.
const reportDelay = 50 * time.Millisecond

// leaseClock is the time by which a lease may end early at a server: Redis counts it from the time that it had read
// before it executed the command, in milliseconds. A lock of this project promises that much less than its lease.
// Source: redis.io, Distributed Locks with Redis, which allows 2 ms besides the drift of clocks.
const leaseClock = 2 * time.Millisecond

// Judging are the options of the judgement that follow from the run: the topology, and the promises of the lock.
func (m Manifest) Judging() checker.Options {
	s, err := scenarios.Parse([]byte(m.YAML))
	o := m.JudgingOf(s)
	o.Shared = o.Shared || err != nil
	return o
}

// checksOptions reports whether a lock refuses options that it does not have. Any other may ignore a scenario's.
func checksOptions(lock string) bool {
	row, err := locks.Lookup(lock)
	return err == nil && row.CheckOptions != nil
}

// JudgingOf is Judging for a caller that has the scenario as it was run: to read it from the manifest takes longer than
// to judge a short run.
func (m Manifest) JudgingOf(s scenarios.Scenario) checker.Options {
	o := checker.Options{
		Promises: m.Can, MayBeDown: m.MayBeDown(), Thresholds: m.Thresholds,
		VirtualTime: m.Deterministic, SimPriorities: m.Deterministic && m.Variation.Priorities(),
		Shared:     s.Workload.PerInstance > 1, // clients may have shared a lock object
		PerProgram: s.Workload.PerProcess, Poll: longestPoll(s), ForeignLock: m.Foreign,
	}
	// A Redis Cluster may refuse all commands once a master was away for that long.
	if ms, err := strconv.Atoi(m.Topology.Options["cluster-node-timeout"]); err == nil {
		o.NodeTimeout = time.Duration(ms) * time.Millisecond
	}
	limit, err := time.ParseDuration(s.Options["max_hold"])
	if err == nil && m.Can.Has(promise.Watchdog) && checksOptions(s.Lock) {
		o.MaxHold = limit
	}
	if !m.Deterministic {
		o.ReportDelay = max(reportDelay, m.Late)
	}
	if m.Foreign && !m.Deterministic {
		o.ClockError = min(max(leaseClock, m.Late), reportDelay)
	}
	if m.Can.Any(promise.Fair | promise.WriterPreference) {
		o.QueueDelay = queueDelay
	}
	return o
}

// Option is an option of the lock in the scenario as run; "" if it has no value.
func (m Manifest) Option(name string) string {
	s, err := scenarios.Parse([]byte(m.YAML))
	if err != nil {
		return ""
	}
	return s.Options[name]
}

// SetExpected sets the outcomes that s, the scenario as run, expects of locks with the promises m.Can.
func (m *Manifest) SetExpected(s scenarios.Scenario) {
	if s.Expect.IsZero() {
		return
	}
	verdict, class := s.Expect.Split()
	m.Expect, m.Because = map[string]string{expect.Verdict: verdict}, map[string]string{}
	if class != "" {
		m.Expect[expect.Class] = class
	}
	for name, x := range s.Expected(m.Can) {
		m.Expect[string(name)], m.Because[string(name)] = x.Outcome, x.Because
	}
}

// Expectation is the scenario's expectation, see [expect.Compare]; by default a safe verdict.
func (m Manifest) Expectation() map[string]string {
	if len(m.Expect) == 0 {
		return map[string]string{expect.Verdict: string(checker.Safe)}
	}
	return m.Expect
}

// NotRun says why the run ended before a client began; "" if clients began.
func (m Manifest) NotRun() string {
	ended := m.State == Broken || m.State == Interrupted
	if !ended || slices.ContainsFunc(m.Phases, func(p Phase) bool { return p.Name == PhaseRun }) {
		return ""
	}
	return cmp.Or(m.Failure, "it was interrupted before its clients began")
}

// Downgrade makes the verdict safe inconclusive if the run did not complete: it has tested less than its scenario says.
// A run in which no client began has the verdict not run, and the reason as its sentence. Violations that were found
// remain, unless the machine slept: then the servers ended leases that clients, whose clock had stopped, still counted
// on; or, if they are broken promises, unless a server was promoted because the harness did not run.
func (m Manifest) Downgrade(j checker.Judgement) checker.Judgement {
	if why := m.NotRun(); why != "" {
		return checker.Judgement{Verdict: checker.NotRun, Sentence: format.Line(why)}
	}
	if m.Slept > 0 {
		j.Verdict, j.Class = checker.Inconclusive, ""
		j.Sentence = fmt.Sprintf("The machine slept during the run, or its clock was set forward, for %s. %s",
			format.Duration(m.Slept), j.Sentence)
		return j
	}
	if m.Elected != "" && j.Class == checker.BrokenPromise {
		j.Verdict, j.Class, j.Sentence = checker.Inconclusive, "", m.Elected+". "+j.Sentence
		return j
	}
	why := map[State]string{
		Running:     "The run was killed, or is still in progress. ",
		Interrupted: "The run was interrupted. ",
		Broken:      "The run failed. ",
	}[m.State]
	if why != "" && j.Verdict == checker.Safe {
		j.Verdict, j.Sentence = checker.Inconclusive, why+j.Sentence
	}
	return j
}

// longestPoll is the longest poll interval (option poll) of the locks of a scenario; 0 if one of them has none.
func longestPoll(s scenarios.Scenario) (longest time.Duration) {
	for client := range s.Workload.Clients {
		_, options := s.LockOf(client, s.Workload.Clients)
		poll, err := time.ParseDuration(options["poll"])
		if err != nil {
			return 0
		}
		longest = max(longest, poll)
	}
	return longest
}
