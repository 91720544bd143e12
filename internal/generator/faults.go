package generator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/scenarios"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// tolerance states which locks survive a fault: under it, a correct lock with these promises keeps all of them.
type tolerance struct {
	fault  string
	weight int         // probability of drawing it, relative to other faults; 0: never
	needs  promise.Set // promises of the locks on which it has an effect
	lacks  promise.Set // promises of the locks that do not survive it
	only   []string    // kinds of topology that survive it; nil: all
	// brief: if it acts on a node, it must be short on some servers, see [draw.longest].
	brief bool
	// durable: servers have to write each grant to disk.
	durable bool
	// repeated: operations are executed twice, so each has to name its hold, see [draw.namesHolds].
	repeated bool
	// early: all clients release a lock in the first half of its lease, see [draw.releasesEarly].
	early bool
	// polled: waiters have to ask again by themselves, see [draw.polls].
	polled  bool
	amounts []time.Duration // magnitudes; nil: the default, a quarter and twice of it
	because string          // the reason why it is never drawn
}

// tolerances has a row for each fault, in the order of the catalog.
func tolerances() []tolerance {
	const dataLost = "it removes stored grants, or moves their keys to a server that never had them"
	return []tolerance{
		{fault: "kill", weight: 8, only: []string{cluster.Single, cluster.ZooKeeper}, durable: true},
		{fault: "restart", weight: 8, only: []string{cluster.Single, cluster.Quorum, cluster.ZooKeeper}, durable: true},
		{fault: "restart-empty", because: dataLost},
		{fault: "power-loss", weight: 6, only: []string{cluster.Single, cluster.Quorum}, durable: true},
		{fault: "slow-disk", weight: 2, durable: true},
		{fault: "pause-node", weight: 3, brief: true},
		{fault: "failover", because: dataLost},
		{fault: "manual-promotion", because: dataLost},
		{fault: "split-brain", because: dataLost},
		{fault: "endpoint-change", because: "connections stay with a server that is a replica then, or a second master"},
		{fault: "cluster-failover", weight: 8},
		{fault: "cluster-failover-force", because: dataLost},
		{fault: "cluster-takeover", because: dataLost},
		{fault: "slot-migration", weight: 60},
		{fault: "read-only-demotion", because: dataLost},
		{
			fault: clockJump, weight: 3, early: true, amounts: []time.Duration{-100 * ms, -time.Second, -time.Minute},
			only: []string{cluster.Single, cluster.Replicated, cluster.Sentinel, cluster.Sharded, cluster.Quorum},
		},
		{fault: "clock-drift", weight: 2, amounts: []time.Duration{5 * ms, 9 * ms}},
		{fault: "key-deleted", because: dataLost},
		{fault: "queue-deleted", weight: 2, needs: promise.Fair | promise.CountWaiters},
		{fault: "foreign-waiter", weight: 2, needs: promise.Fair | promise.CountWaiters},
		{fault: "node-deleted", because: dataLost},
		{fault: "flushall", because: dataLost},
		{fault: "eviction", because: dataLost},
		{fault: "foreign-data", weight: 1, needs: promise.DistinguishesNotOwner},
		{fault: "memory-full", weight: 2},
		{fault: "writes-refused", weight: 2},
		{fault: "script-flush", weight: 3, needs: promise.Scripts},
		{fault: "snapshots-failing", weight: 1},
		{fault: "busy-script", weight: 3},
		{fault: "connection-limit", weight: 1},
		{fault: "pubsub-cut", weight: 3, needs: promise.Wakes},
		{fault: "rights-revoked", weight: 2},
		{fault: "subscribe-refused", weight: 2, needs: promise.Wakes},
		{fault: "channel-refused", weight: 2, needs: promise.Wakes},
		{fault: "scripts-refused", weight: 1, needs: promise.Scripts},
		{fault: "partition", weight: 4, brief: true},
		{fault: "partition-one-way", weight: 3, brief: true},
		{fault: "latency", weight: 3, brief: true, amounts: []time.Duration{5 * ms, 20 * ms, 60 * ms, 180 * ms}},
		{fault: "jitter", weight: 3, brief: true, amounts: []time.Duration{5 * ms, 50 * ms, 200 * ms}},
		{fault: "bandwidth", weight: 1, brief: true},
		{fault: "slow-node", weight: 2, brief: true},
		{fault: "packet-late", weight: 5, brief: true, amounts: []time.Duration{100 * ms, 400 * ms, 1100 * ms}},
		{fault: "packet-lost", weight: 5, brief: true},
		{fault: "connection-reset", weight: 3},
		{ // A client of ZooKeeper notices after two thirds of its session, which is later than the checkers allow.
			// Replicas notice after a minute, and nobody is granted a lock that waits for them.
			fault: "silent-connections", weight: 2, lacks: promise.AwaitsReplicas,
			only: []string{cluster.Single, cluster.Replicated, cluster.Sentinel, cluster.Sharded, cluster.Quorum},
		},
		{fault: "reply-lost", weight: 10},
		{fault: "reply-late", weight: 4},
		{fault: "grant-reply-lost", weight: 4, lacks: promise.Latch},
		{fault: "grant-reply-late", weight: 3, lacks: promise.Latch},
		{
			fault: "request-resent", weight: 5, repeated: true, needs: promise.RetriesTransientErrors,
			amounts: []time.Duration{5 * ms, 20 * ms, 400 * ms, 900 * ms},
		},
		{fault: "request-duplicated", because: "a copy of a request arrives long after the reply to its client"},
		{fault: "message-lost", weight: 8, needs: promise.Wakes, polled: true},
		{fault: "replication-hold", weight: 10, needs: promise.AwaitsReplicas},
		{fault: "replication-lag", weight: 6, needs: promise.AwaitsReplicas},
		{fault: "wait-starved", weight: 10, needs: promise.AwaitsReplicas},
		{fault: "unplug", because: "it needs real network interfaces"},
		{fault: pauseClient, weight: 6, lacks: promise.Unleased, early: true},
		{fault: "client-crash", weight: 10, lacks: promise.Unleased},
		{fault: "client-restart", because: "its owners have the same names again, and may find a hold that they left behind"},
	}
}

const pauseClient, clockJump = "pause-client", "clock-jump"

// takeover is the time for which a master may be silent without being replaced, less a margin.
const takeover = 300 * ms

// heartbeats is the part of a session for which the leader of an ensemble may lack the heartbeats of its clients. Its
// followers answer these by themselves, also while the leader does not receive them: after two thirds of a session the
// leader ends it, although its client was answered.
const heartbeats = 4

// longest is the longest time for which a brief fault may act on a node; 0: no limit.
func (d *draw) longest() time.Duration {
	switch kind := d.Topology.Kind; {
	case kind == cluster.Sentinel, kind == cluster.Sharded:
		return takeover
	case kind != cluster.ZooKeeper:
		return 0
	case d.Workload.Kind == workload.Mixed: // sequences have short leases of their own
		return 200 * ms / heartbeats
	}
	return min(cmp.Or(d.Workload.Lease, time.Second), time.Second) / heartbeats
}

// survives reports whether the lock of the scenario survives the fault on its servers.
func (d *draw) survives(t tolerance) bool {
	kind := d.Topology.Kind
	stored := kind == cluster.Command && d.can.Has(promise.KeepsGrants) // nothing else is known of these servers
	switch {
	case t.weight == 0, !d.can.Has(t.needs), d.can.Any(t.lacks):
		return false
	case t.only != nil && !slices.Contains(t.only, kind) && !stored:
		return false
	case t.repeated && !d.namesHolds():
		return false
	case t.early && !d.releasesEarly(), t.polled && !d.polls():
		return false
	case t.durable && kind != cluster.ZooKeeper && d.Topology.Options["appendonly"] == "" && !stored:
		return false
	}
	row, err := faults.Lookup(t.fault)
	return err == nil && row.WrongServers(d.Topology) == "" && row.WrongSettings(d.Topology) == "" &&
		(row.Least == nil && !row.HealLast || !d.outworks()) && // it may last for as long as the run
		(!row.WholeProcess || d.Workload.PerProcess <= 1) &&
		(d.Workload.PerInstance <= 1 || slices.ContainsFunc(row.TargetWords(), func(t string) bool { return !ofClients(t) }))
}

// NotSurvived returns a fault of a scenario that a lock with these promises need not survive, and the reason: a
// violation in such a run is no bug of the lock, unless it promises to keep its grants where servers lose them. Both
// are "" if there is none.
func NotSurvived(s scenarios.Scenario, can promise.Set) (fault, why string) {
	const elected = "the server that takes over may not have the grant"
	d := draw{Scenario: s, can: can}
	keeps := can.Any(promise.KeepsGrants | promise.AwaitsReplicas)
	for _, name := range s.FaultNames() {
		i := slices.IndexFunc(tolerances(), func(t tolerance) bool { return t.fault == name })
		if i < 0 {
			continue
		}
		t := tolerances()[i]
		row, _ := faults.Lookup(name) // the loader has checked it
		unsynced := row.Class == history.FaultForgets && s.Topology.Options["appendfsync"] != "always"
		skewed := t.amounts != nil && row.Class == history.FaultSkews && largest(s, row) > slices.Max(t.amounts)
		t.early, t.repeated = false, false // conditions for drawing
		switch {
		case row.Least != nil && slices.ContainsFunc(s.Faults, func(step scenarios.Step) bool {
			return step.Fault == name && step.For > 0
		}):
			return name, "it ends before a client has to notice, which is when it uses a connection, after a timeout of its own"
		case keeps && (t.because != "" || t.only != nil), d.survives(t) && !unsynced && !skewed:
		case t.because != "":
			return name, t.because
		case skewed:
			return name, "it is larger than the margin of a lease"
		case !can.Has(t.needs):
			return name, "the lock does not state " + t.needs.Without(can).String()
		case s.Topology.Kind == cluster.Command && (t.only != nil || unsynced || t.durable):
			return name, "the lock does not state " + promise.KeepsGrants.String()
		case t.only != nil && !slices.Contains(t.only, s.Topology.Kind):
			return name, elected
		case unsynced || t.durable && s.Topology.Options["appendonly"] == "":
			return name, "the servers do not write each grant to disk"
		}
	}
	return "", ""
}

// largest is the largest amount of a fault in a scenario.
func largest(s scenarios.Scenario, row faults.Spec) time.Duration {
	amount := -history.Infinity
	for _, step := range s.Faults {
		if step.Fault == row.Name {
			amount = max(amount, cmp.Or(step.Amount, row.Amount.Default))
		}
	}
	return amount
}

// namesHolds reports whether all operations of the traffic name a hold, by which servers recognize a second execution.
// A forced release, and an access to a resource that the servers guard, do not.
func (d *draw) namesHolds() bool {
	p := d.Workload
	if p.Kind == workload.Mixed && p.Sequences != "" {
		return !strings.Contains(p.Sequences, "force") && !strings.Contains(p.Sequences, "guarded")
	}
	return !p.AnyLock() || !d.can.Has(promise.ForceRelease)
}

// releasesEarly reports whether each client has one lock at a time, and releases it in the first half of its lease.
// Clients of workload mixed may have one while they wait for another, and keep some until the lease ends.
func (d *draw) releasesEarly() bool { return d.Workload.Kind != workload.Mixed && !d.outworks() }

// latest is how late a request may arrive. A lock with a timeout remembers a release for twice as long: an acquire that
// arrives after that creates a hold for nobody.
func (d *draw) latest() time.Duration {
	timeout, err := time.ParseDuration(d.Options["timeout"])
	if err != nil {
		return history.Infinity
	}
	return timeout * 3 / 2
}

// optionPoll is the option of locks for the longest sleep of a waiter before it asks again.
const optionPoll = "poll"

// polls reports whether a waiter that missed a message asks again before the checkers call it forgotten. Without polls
// it does so when the lease that it waits for would have ended.
func (d *draw) polls() bool {
	poll, err := time.ParseDuration(d.Options[optionPoll])
	return err == nil && poll <= 500*ms
}
