package generator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/scenarios"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// drawFaults draws the faults, each once or several times; some runs have a slow network.
func (d *draw) drawFaults() {
	possible := slices.DeleteFunc(tolerances(), func(t tolerance) bool { return !d.survives(t) })
	if d.outworks() {
		d.kinds = min(d.kinds, 1)
	}
	for range d.kinds {
		if len(possible) == 0 {
			return
		}
		t := weighted(d, possible, func(t tolerance) int { return t.weight })
		d.addFault(t)
	}
	if d.chance(15) && !d.outworks() && !slices.Contains(d.FaultNames(), pauseClient) {
		d.Faults = append(d.Faults, d.distance())
	}
	slices.SortStableFunc(d.Faults, func(a, b scenarios.Step) int { return cmp.Compare(a.After, b.After) })
	for i := len(d.Faults) - 1; i >= 0 && d.Check() != nil; i-- { // two that control the same resource
		d.Faults = slices.Delete(d.Faults, i, i+1)
	}
	d.boundPauses()
}

// distance is a delay of all messages throughout the run, with which clients and servers are far from each other: many
// more requests are in flight when something else happens. Each wait still ends in time, see faults.shortDelay.
func (d *draw) distance() scenarios.Step {
	amount := pick(d, 2*ms, 8*ms, 20*ms)
	// A wait of 100 ms has to be enough to connect to a majority and to ask it, and 0.5 s for the first place in a queue
	// of an ensemble, which takes about eighty messages one after another.
	if d.Topology.Kind == cluster.Quorum || d.Topology.Ensemble() {
		amount = 2 * ms
	}
	return scenarios.Step{Fault: "latency", Target: string(faults.All), Amount: amount, Optional: true}
}

// boundPauses limits pauses, so that no client is paused beyond the end of its lease, which no lock survives. A holder
// may be paused for a quarter of a lease, since it has half of one left. Only waiters are paused for longer, in rounds
// (short leases of their own), and beside other faults, which may have delayed the grant or prevented renewals.
func (d *draw) boundPauses() {
	names := d.FaultNames()
	alone := !slices.ContainsFunc(names, func(name string) bool { return name != pauseClient })
	for i := range d.Faults {
		if step := &d.Faults[i]; step.Fault == pauseClient && !d.can.Has(promise.Latch) &&
			!(alone && d.Workload.Kind != workload.Waiters && step.For <= d.shortestLease()/4) {
			step.Target = string(faults.Waiter)
		}
	}
}

// shortestLease is the lease that clients request, or that the lock has if they request none: at least a second, unless
// an option says otherwise.
func (d *draw) shortestLease() time.Duration {
	return cmp.Or(d.Workload.Lease, d.OptionLease(), time.Second)
}

// addFault adds a fault, and some of the time repeats it, perhaps until the end. It may follow the previous fault
// closely, on the same client.
func (d *draw) addFault(t tolerance) {
	step := d.step(t)
	if n := len(d.Faults); n > 0 && d.chance(40) {
		d.follow(&step, d.Faults[n-1])
	}
	gap := step.For + d.between(200*ms, 2*time.Second)
	if d.outworks() {
		gap = max(gap, step.For+d.renewedLease())
	}
	times := pick(d, 1, 1, 2, 4, 20)
	if t.fault == pauseClient { // paused again as it resumes, it may be granted a lock in between, and lose it
		times = 1
	}
	for range times {
		if step.After+step.For >= d.Duration-200*ms {
			return
		}
		d.Faults = append(d.Faults, d.shortened(step, t))
		step.After += gap
		if d.chance(50) {
			step.Target, step.Delay = d.target(t), d.delay(step.When)
		}
	}
}

// follow has a step strike soon after a previous one.
func (d *draw) follow(step *scenarios.Step, previous scenarios.Step) {
	step.After, step.When = previous.After+ms, previous.When
	step.Delay = 0
	if step.When != "" {
		step.Delay = previous.Delay + d.delay(step.When)
	}
	if row, err := faults.Lookup(step.Fault); err == nil && ofClients(step.Target) && ofClients(previous.Target) &&
		row.CheckTarget(previous.Target) == nil {
		step.Target = previous.Target
	}
}

// shortened limits the duration of a step that acts on a node.
func (d *draw) shortened(step scenarios.Step, t tolerance) scenarios.Step {
	most := d.longest()
	if !t.brief || most == 0 || ofClients(step.Target) {
		return step
	}
	step.For = min(step.For, most)
	if d.Topology.Kind == cluster.ZooKeeper { // a delay of its messages holds up all that follow
		step.Amount = min(step.Amount, most)
	}
	return step
}

// step draws one step with the fault.
func (d *draw) step(t tolerance) scenarios.Step {
	row, _ := faults.Lookup(t.fault) // survives has looked it up
	step := scenarios.Step{Fault: t.fault, After: d.between(100*ms, d.Duration*2/3), Optional: true}
	step.Target = d.target(t)
	if when := d.phase(); when != "" {
		step.When, step.Delay = when, d.delay(when)
	}
	if !row.OneShot || d.chance(60) {
		step.For = d.length(t)
	}
	if row.HealLast && !slices.Contains(t.only, cluster.Single) {
		step.For = 0
	}
	if row.Least != nil || row.Name == clockJump { // a lock learns of each broken connection only when it next uses it
		step.For = 0
	}
	if a := row.Amount; a != nil {
		step.Amount = pick(d, a.Default, a.Default/4, 2*a.Default)
		if t.amounts != nil {
			step.Amount = min(pick(d, t.amounts...), d.latest())
		}
		if t.fault == clockJump && !d.can.Has(promise.Latch) { // at the end of the run, it is healed by a jump forward
			step.Amount = max(step.Amount, -d.shortestLease()/4)
		}
		if d.outworks() {
			step.Amount = min(step.Amount, max(a.Min, d.renewedLease()/8))
		}
	}
	return step
}

// target draws the node or the client that the fault hits. Clients that share connections share their faults, so one
// of them alone is no target then.
func (d *draw) target(t tolerance) string {
	for {
		if target := d.DrawTarget(t.fault, d.Rand); d.Workload.PerInstance <= 1 || !ofClients(target) {
			return target
		}
	}
}

// phase draws the moment of an operation at which a fault is to strike; "": none.
func (d *draw) phase() string {
	if d.can.Has(promise.Latch) {
		return ""
	}
	phases := []string{
		"", scenarios.Requested, scenarios.Requested, scenarios.Waiting, scenarios.Granted, scenarios.Acquired,
		scenarios.Acquired, scenarios.Acquired, scenarios.Releasing, scenarios.Releasing, scenarios.Released,
	}
	if d.Topology.LacksSamples() != "" {
		phases = slices.DeleteFunc(phases, func(phase string) bool { return phase == scenarios.Granted })
	}
	if d.can.Has(promise.Renew) || d.can.Has(promise.Watchdog) && d.Workload.Lease == 0 {
		phases = append(phases, scenarios.Renewed)
	}
	return pick(d, phases...)
}

// delay draws the time from the phase to the fault.
func (d *draw) delay(when string) time.Duration {
	if when == "" || d.chance(50) {
		return 0
	}
	hold := d.Workload.Defaults().Hold
	return d.between(ms, pick(d, 5*ms, hold, 2*hold, max(hold, d.Workload.Lease)))
}

// length draws how long the fault lasts: shorter or longer than a lease or a wait.
func (d *draw) length(t tolerance) time.Duration {
	lease := cmp.Or(d.Workload.Lease, time.Second)
	length := pick(d, 50*ms, 200*ms, 700*ms, 1500*ms, 2500*ms, lease/2, lease*3/2)
	length = min(length, d.Duration/2, 6*time.Second).Truncate(ms)
	if t.fault == pauseClient && d.chance(50) { // short enough for a holder, see boundPauses
		length = min(length, d.shortestLease()/4).Truncate(ms)
	}
	if d.outworks() { // the next renewal is in time
		length = min(length, d.renewedLease()/4).Truncate(ms)
	}
	return length
}

// ofClients reports whether a target is clients, or links of clients.
func ofClients(target string) bool {
	for _, word := range []faults.Target{faults.Holder, faults.Waiter, "client:"} {
		if strings.HasPrefix(target, string(word)) {
			return true
		}
	}
	return false
}
