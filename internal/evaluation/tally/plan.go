package tally

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/scenarios"
)

// mostClients is the size from which a scenario measures load rather than correctness.
const mostClients = 50

// topologyWord begins the reason of a scenario whose topology is not to be tested.
const topologyWord = "topology "

// startTime is about the time that a run needs in addition to its scenario's duration.
const startTime = 2 * time.Second

// Takes is about the time that a run of s takes.
func Takes(s scenarios.Scenario) time.Duration { return s.Duration + startTime }

// Plan returns the stories that fit a lock and its topologies, in the order that covers new combinations of workload,
// fault and topology soonest, and the names of the other stories by the reason why they do not fit.
func Plan(lock generator.Lock) (chosen []scenarios.Scenario, unfit map[string][]string) {
	unfit = map[string][]string{}
	var candidates []scenarios.Scenario
	for _, e := range scenarios.Stories() {
		s, why := fitting(e.Name, lock)
		switch {
		case why != "":
			unfit[why] = append(unfit[why], e.Name)
		default:
			candidates = append(candidates, s)
		}
	}
	covered := map[string]bool{}
	for len(candidates) > 0 {
		best, most := 0, -1.0
		for i, c := range candidates {
			if v := value(c, covered); v > most {
				best, most = i, v
			}
		}
		for _, f := range features(candidates[best]) {
			covered[f] = true
		}
		chosen = append(chosen, candidates[best])
		candidates = slices.Delete(candidates, best, best+1)
	}
	return chosen, unfit
}

// fitting is the story of that name with a lock, or why it does not fit.
func fitting(name string, lock generator.Lock) (s scenarios.Scenario, why string) {
	s, err := scenarios.Load(name)
	if err != nil {
		return s, err.Error()
	}
	if why := wrongServers(s, lock); why != "" {
		return s, why
	}
	if len(s.Locks) > 0 {
		return s, "several locks at once"
	}
	if lock.Alone && (s.Workload.PerProcess > 1 || s.Workload.PerInstance > 1) {
		return s, "several clients in one process"
	}
	if s.Workload.Defaults().Clients > mostClients {
		return s, fmt.Sprintf("more than %d clients", mostClients)
	}
	with := []scenarios.Override{{As: "--lock", Path: "lock", Value: fmt.Sprintf("%q", lock.Name)}}
	if lock.Servers != nil {
		with = append(with, scenarios.Override{As: "--topology", Path: "topology", Value: lock.Servers.Text()})
	}
	s, err = scenarios.Load(name, with...)
	if err == nil {
		s, err = s.ForLock(lock.Can)
	}
	if err != nil {
		return s, reason(err)
	}
	return s, s.NotFor(lock.Can)
}

// wrongServers is why s is not for the servers on which a lock is tested.
func wrongServers(s scenarios.Scenario, lock generator.Lock) string {
	kind := s.Topology.Kind
	switch own := lock.Servers; {
	case own == nil && !slices.Contains(lock.Kinds, kind):
		return topologyWord + kind
	case own != nil && !own.StandsFor(kind):
		return "it is for topology " + kind
	}
	return ""
}

// reason is the innermost text of an error, the first one of several, which names no scenario.
func reason(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return reason(several.Unwrap()[0])
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// value is the number of features that a scenario adds to the covered ones, for each second of its run. Traffic without
// a fault counts most: it shows at once that a lock is broken.
func value(s scenarios.Scenario, covered map[string]bool) float64 {
	n := 0.1
	for _, f := range features(s) {
		switch {
		case covered[f]:
		case strings.HasPrefix(f, faultless):
			n += 20
		default:
			n++
		}
	}
	return n / Takes(s).Seconds()
}

// faultless begins the feature of a scenario without faults.
const faultless = "no fault under "

// features are the workload, the topology and the faults of a scenario, alone and in combination.
func features(s scenarios.Scenario) []string {
	w := s.Workload.Defaults()
	all := []string{"workload " + w.Kind, "topology " + s.Topology.Kind, "lone " + fmt.Sprint(len(s.Faults) == 0)}
	for _, name := range s.FaultNames() {
		row, err := faults.Lookup(name)
		if err != nil {
			continue // the loader has checked it
		}
		all = append(all, "fault "+name, row.Class+" "+row.Object+" under "+w.Kind+" on "+s.Topology.Kind)
	}
	if len(s.Faults) == 0 {
		all = append(all, faultless+w.Kind+" on "+s.Topology.Kind)
	}
	return all
}

// notStated names the portable promises that a client does not state.
func notStated(can promise.Set) (names []string) {
	for _, p := range promise.Catalog() {
		if !p.House && !can.Has(p.Set) && p.Set != promise.Unleased {
			names = append(names, p.Name)
		}
	}
	return names
}
