package servers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/target"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Target is the name of the backend whose servers the run did not start.
const Target = "target"

// targetSampleEvery spares servers that others use: 40 samples a second instead of 125.
const targetSampleEvery = 25 * time.Millisecond

// targetBackend runs clients as processes, like backend process, against servers that exist.
type targetBackend struct {
	*processBackend
	config   target.Config
	failover bool
}

// OnTarget is a backend for servers that the run does not start, and the scenario as it runs there: with their
// topology, and keys with a prefix. It refuses a scenario that could harm them. Nothing has been changed at the servers
// yet.
func OnTarget(
	ctx context.Context, o backend.Options, cfg target.Config, failover bool, s scenarios.Scenario, seed uint64,
) (backend.Backend, scenarios.Scenario, error) {
	if len(s.Topology.Options) > 0 {
		return nil, s, errOptions
	}
	if s.Topology.SentinelQuorum != 0 { // before Defaults, which sets it
		return nil, s, fmt.Errorf("%w: topology.sentinel_quorum cannot be set on Sentinels that the run did not start",
			ErrTargetRefused)
	}
	if cfg.Address.Kind != s.Topology.Kind {
		return nil, s, fmt.Errorf("%w: the scenario is for topology %s, and the target is %s (if the scenario makes sense "+
			"there: --set topology.kind=%s)", ErrTargetRefused, s.Topology.Kind, cfg.Address.Kind, cfg.Address.Kind)
	}
	planned := s
	planned.Topology = s.Topology.Defaults()
	if err := refuse(planned, failover, seed); err != nil { // before any connection
		return nil, s, err
	}
	found, err := target.Discover(ctx, cfg)
	if err != nil {
		return nil, s, err
	}
	s.Topology = found.Topology()
	_ = found.Close(ctx) // it has no gates yet, and no key has its prefix
	if err := refuse(s, failover, seed); err != nil {
		return nil, s, err
	}
	s.Workload.Prefix = cfg.Prefix
	b := &targetBackend{newProcessBackend(o), cfg, failover}
	b.facts.Name = Target
	return b, s, nil
}

// AtAddresses is s on servers of any kind that run already, as a flag with that text asks for.
func AtAddresses(s scenarios.Scenario, own cluster.Topology, flag string) (scenarios.Scenario, error) {
	switch {
	case !own.StandsFor(s.Topology.Kind):
		return s, fmt.Errorf("%w: scenario %s is for topology %s; servers of any kind stand for those of topology %s, and "+
			"several also for those of topology %s", ErrTargetRefused, s.Name, s.Topology.Kind, cluster.Single,
			cluster.ZooKeeper)
	case len(s.Topology.Options) > 0:
		return s, errOptions
	}
	return scenarios.Parse([]byte(s.YAML()), scenarios.Override{As: flag, Path: "topology", Value: own.Text()})
}

// ErrTargetRefused: the scenario needs an action that is not allowed on servers that the run did not start.
var ErrTargetRefused = errors.New("--target")

var errOptions = fmt.Errorf("%w: topology.options cannot be set on servers that the run did not start",
	ErrTargetRefused)

// refuse checks every step of the plan.
func refuse(s scenarios.Scenario, failover bool, seed uint64) error {
	for _, step := range s.Plan(seed).All() {
		row, err := faults.Lookup(step.Fault)
		if err != nil {
			return err
		}
		why := row.Foreign(step.Target, s.Topology, failover)
		if why == "" {
			why = row.MissingTarget(step.Target, s.Topology, s.Workload.Defaults().Clients)
		}
		if why != "" {
			return fmt.Errorf("%w: fault %s of %s: %s", ErrTargetRefused, step.Fault, s.Name, why)
		}
	}
	return nil
}

// Start finds the servers again and opens the gates.
func (b *targetBackend) Start(ctx context.Context, e backend.Env) (cluster.Cluster, error) {
	if err := checkLimits(e); err != nil {
		return nil, err
	}
	b.config.Stranger = strangersOf(e)
	t, err := target.Discover(ctx, b.config)
	if err != nil {
		return nil, err
	}
	b.started(e, map[string]string{"redis": t.Version(ctx)})
	b.facts.Sampling.Every = targetSampleEvery
	var c cluster.Cluster = t
	if b.failover {
		c = target.Failover{Target: t}
	}
	return c, t.OpenGates()
}
