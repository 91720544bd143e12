// Package generator draws scenarios from seeds: topology, options of the lock, traffic and faults, so that runs reach
// combinations that nobody has written down. A drawn scenario has only faults that a correct lock with the stated
// promises survives, and so is expected to be safe: a broken promise is a bug of the lock. Its Go API is not a promise.
//
// Read [Lock.Draw] first. The idea is swarm testing (Groce et al. 2012): each seed leaves out most operations and
// faults, so that the remaining ones meet in many orders.
package generator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Lock is the lock that scenarios are drawn for.
type Lock struct {
	client.Spec
	// Kinds are the topologies to draw from, all of which the lock runs on.
	Kinds []string
	// Alone: a process of the client cannot host several clients.
	Alone bool
	// Servers are the servers of the user, of kind command, which all scenarios are for; nil: servers of Kinds.
	Servers *cluster.Topology
}

// prefix begins the names of drawn scenarios, which end with the seed.
const prefix = "generated-"

// Name is the name of the scenario that a seed draws.
func Name(seed uint64) string { return prefix + strconv.FormatUint(seed, 10) }

// SeedOf is the seed in the name of a drawn scenario; false: name is another scenario's.
func SeedOf(name string) (seed uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	seed, err := strconv.ParseUint(digits, 10, 64)
	return seed, ok && err == nil
}

// Find is the lock of that name in the catalogs, with all topologies that it runs on. A program of the user states its
// promises when it starts; before, it has none.
func Find(name string) (Lock, error) {
	row, err := adapters.Lookup(name)
	if err != nil {
		return Lock{}, err
	}
	l := Lock{Spec: row}
	for _, kind := range cluster.Topologies() {
		if row.Runs(kind.Name) && (row.Topologies != nil || shared(kind.Name)) {
			l.Kinds = append(l.Kinds, kind.Name)
		}
	}
	return l, nil
}

// Simulated is l with the topologies that can be simulated; none for a program of the user.
func (l Lock) Simulated() Lock {
	l.Kinds = slices.DeleteFunc(slices.Clone(l.Kinds), func(kind string) bool {
		return kind == cluster.Etcd || cluster.Topology{Kind: kind}.Database()
	})
	if l.Command != nil {
		l.Kinds = nil
	}
	return l
}

// shared reports whether a lock that names no topologies is drawn on that kind, which behaves as a single server.
func shared(kind string) bool { return kind == cluster.Single || kind == cluster.Replicated }

// stream is the stream of random numbers for drawing scenarios; a run has another one.
const stream = 0x6c6f636b63686173

// maxFaults is the largest number of faults of a scenario, without repetitions.
const maxFaults = 4

// draw is a scenario while it is drawn.
type draw struct {
	*rand.Rand
	scenarios.Scenario
	can   promise.Set // of the lock with the options of the scenario
	kinds int         // how many kinds of fault to draw
}

// Draw returns the scenario of a seed, with overrides: the same one for the same lock, kinds and seed. It is valid. The
// error is one of the caller: the lock runs on none of the kinds, or has no workload, or an override does not fit.
func (l Lock) Draw(seed uint64, overrides ...scenarios.Override) (scenarios.Scenario, error) {
	if len(l.Kinds) == 0 {
		return scenarios.Scenario{}, fmt.Errorf("lock %s: no topology to draw from", l.Name)
	}
	d := &draw{Rand: rand.New(rand.NewPCG(seed, stream))}
	d.Name = Name(seed)
	d.Lock = l.Name
	d.Expect = scenarios.Expect{Verdict: string(checker.Safe)}
	if l.Servers != nil {
		d.Topology = *l.Servers
	} else {
		d.drawTopology(l.Kinds)
	}
	d.drawOptions(l.Spec)
	d.kinds = pick(d, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 3, maxFaults)
	if d.drawTraffic(); l.Alone {
		d.Workload.PerProcess, d.Workload.PerInstance = 0, 0
	}
	d.drawFaults()
	d.Summary = d.summary()
	if err := d.Check(); err != nil {
		return d.Scenario, fmt.Errorf("scenario %s of lock %s: %w", d.Name, l.Name, err)
	}
	if len(overrides) == 0 {
		return d.Scenario, nil
	}
	return scenarios.Parse([]byte(d.YAML()), overrides...)
}

// chance is true in n of 100 draws.
func (d *draw) chance(n int) bool { return d.IntN(100) < n }

// pick draws one of some values.
func pick[T any](d *draw, of ...T) T { return of[d.IntN(len(of))] }

// between draws a duration of whole milliseconds from a to b; it is a if they are less than a millisecond apart.
func (d *draw) between(a, b time.Duration) time.Duration {
	if b-a < time.Millisecond {
		return a
	}
	return a + time.Duration(d.Int64N(int64((b-a)/time.Millisecond)+1))*time.Millisecond
}

// topologyWeight prefers a single server, which is the fastest to simulate; most bugs need no other.
func topologyWeight(kind string) int {
	switch kind {
	case cluster.Single:
		return 6
	case cluster.Sharded, cluster.Quorum:
		return 2
	}
	return 1
}

func (d *draw) drawTopology(kinds []string) {
	d.Topology.Kind = weighted(d, kinds, topologyWeight)
	t := &d.Topology
	switch t.Kind {
	case cluster.Quorum:
		t.Masters = pick(d, 3, 3, 5)
	case cluster.Replicated, cluster.Sentinel:
		t.Replicas = pick(d, 1, 2)
	}
	if t.Kind == cluster.Sentinel { // they connect to a master again once a second, so two resets must not depose it
		t.DownAfter = 3 * time.Second
	}
	if durable(t.Kind) && d.chance(25) {
		t.Options = map[string]string{"appendonly": "yes", "appendfsync": "always"}
	}
}

// durable reports whether masters of that kind can be restarted without losing a grant, if they write each one to disk.
func durable(kind string) bool { return kind == cluster.Single || kind == cluster.Quorum }

// weighted draws one of some values, each with a probability in proportion to its weight.
func weighted[T any](d *draw, of []T, weight func(T) int) T {
	sum := 0
	for _, x := range of {
		sum += weight(x)
	}
	n := d.IntN(sum)
	i := slices.IndexFunc(of, func(x T) bool { n -= weight(x); return n < 0 })
	return of[i]
}

// summary is the scenario in one sentence.
func (d *draw) summary() string {
	text := fmt.Sprintf("%s on %s, workload %s", d.Lock, d.Topology.Kind, d.Workload.Kind)
	names := slices.Compact(slices.Sorted(slices.Values(d.FaultNames())))
	for i, name := range names {
		if i == 0 {
			text += ", with"
		}
		text += " " + name
	}
	return text
}

// drawOptions draws some of the options that the lock declares.
func (d *draw) drawOptions(l client.Spec) {
	options := map[string]string{}
	for _, o := range l.Options {
		if len(o.Topologies) > 0 && !slices.Contains(o.Topologies, d.Topology.Kind) || !d.chance(o.Share) {
			continue
		}
		options[o.Name] = pick(d, o.Values...)
		if l.CheckOptions != nil && l.CheckOptions(options) != nil {
			delete(options, o.Name)
		}
	}
	if d.can = l.Can; l.CanWith != nil {
		d.can = l.CanWith(options)
	}
	if len(options) > 0 {
		d.Options = options
	}
}
