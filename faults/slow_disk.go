package faults

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// slow-disk makes every fsync take long, as on a busy or failing disk. With appendfsync always, the server stops until
// each fsync has ended, and then replies. With everysec a thread fsyncs: writes during the fsync are acknowledged but
// wait in the server's memory for up to two seconds; then the server stops too. The effect is a delayed fsync, for
// which a reply waits, or, with everysec, an acknowledged write.
var slowDiskSpec = delayingFsyncs(Spec{
	Name:       "slow-disk",
	Doc:        "makes each fsync of a server take `amount` until healed.",
	Source:     "redis.io, Diagnosing latency issues: latency due to AOF and disk I/O",
	Class:      history.FaultDelays,
	Object:     history.ObjectFsyncs,
	Verb:       "had its fsyncs delayed",
	Targets:    []Target{Master, Deciding, Node, Nodes, Minority, Majority},
	Amount:     &Amount{"how long an fsync takes", time.Second, time.Millisecond, time.Minute},
	Topologies: []string{cluster.Single, cluster.Quorum, cluster.Command},
	Settings:   map[string][]string{"appendonly": {"yes"}, "appendfsync": {"always", "everysec", ""}},
	Resources:  ofEachNode("the disk of "),
	Requires:   cluster.Requirements{Disks: true},
	Lacks:      lacks[cluster.SlowDisks]("delay the fsyncs of a server"),
})

// delayingFsyncs adds to a row how the fault is injected.
func delayingFsyncs(s Spec) Spec {
	row := s
	s.Inject = func(ctx context.Context, env Env, target string) (Injection, error) {
		d := slowDisks{env.Cluster.(cluster.SlowDisks), nodesOf(target)}
		before, err := d.fsyncs(ctx)
		if err != nil {
			return nil, err
		}
		effect := "waits for an fsync before it replies"
		if t := env.Cluster.Topology(); t.Kind == cluster.Command {
			effect = "waits for an fsync"
		} else if t.Options["appendfsync"] != "always" {
			effect = "has acknowledged writes that wait for an fsync"
		}
		in := &injection{
			observe: func(ctx context.Context) (string, error) {
				return await(ctx, "an fsync that is delayed", func() (string, bool) {
					now, err := d.fsyncs(ctx)
					i := slices.IndexFunc(d.nodes, func(node string) bool { return now[node] > before[node] })
					if err != nil || i < 0 {
						return "", false
					}
					return d.nodes[i] + " " + effect, true
				})
			},
			undo: func(ctx context.Context) (string, error) { return "fsyncs are no longer delayed", d.set(ctx, 0) },
		}
		return in.started(ctx, d.set(ctx, row.amount(env)))
	}
	return s
}

// slowDisks are the disks of some nodes.
type slowDisks struct {
	disks cluster.SlowDisks
	nodes []string
}

// set makes each fsync take that long.
func (d slowDisks) set(ctx context.Context, each time.Duration) error {
	var errs []error
	for _, node := range d.nodes {
		errs = append(errs, d.disks.SlowDisk(ctx, node, each))
	}
	return errors.Join(errs...)
}

// fsyncs returns how many fsyncs of each node were delayed so far.
func (d slowDisks) fsyncs(ctx context.Context) (map[string]int, error) {
	all := map[string]int{}
	for _, node := range d.nodes {
		n, err := d.disks.SlowFsyncs(ctx, node)
		if err != nil {
			return nil, err
		}
		all[node] = n
	}
	return all, nil
}
