package faults

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// outage takes servers down in some way and brings them back in some way.
type outage struct {
	down, up       func(ctx context.Context, node string) error
	effect, healed string // for people; healed follows the names of the nodes
}

// killed is an outage of server processes.
func killed(target string, down, up func(context.Context, string) error) outage {
	effect := "process exited"
	if n := len(nodesOf(target)); n > 1 {
		effect = format.Count(n, "process") + " exited"
	}
	return outage{down: down, up: up, effect: effect, healed: "restarted"}
}

// inject takes the nodes of target down: at the same time where the cluster can, because machines that share a power
// supply fail together. If one of them cannot be taken down, the others are brought back at once, also when the reason
// is that ctx has ended: the caller gets no Injection to heal.
func (o outage) inject(ctx context.Context, c cluster.Cluster, target string) (Injection, error) {
	nodes := nodesOf(target)
	var down []string
	errs := each(c, nodes, func(node string) error { return o.down(ctx, node) })
	for i, err := range errs {
		if err == nil {
			down = append(down, nodes[i])
		}
	}
	if err := errors.Join(errs...); err != nil {
		undo, cancel := recovery(ctx)
		defer cancel()
		return nil, errors.Join(err, o.bringBack(undo, c, down))
	}
	return &injection{observe: already(o.effect), undo: func(ctx context.Context) (string, error) {
		return strings.Join(nodes, ", ") + " " + o.healed, o.bringBack(ctx, c, nodes)
	}}, nil
}

// bringBack tries all nodes, also when one fails.
func (o outage) bringBack(ctx context.Context, c cluster.Cluster, nodes []string) error {
	return errors.Join(each(c, nodes, func(node string) error { return o.up(ctx, node) })...)
}

// each calls do for all nodes: concurrently if the cluster can, else one after the other.
func each(c cluster.Cluster, nodes []string, do func(node string) error) []error {
	if c, ok := c.(cluster.Concurrent); ok {
		return c.Each(nodes, do)
	}
	errs := make([]error, len(nodes))
	for i, node := range nodes {
		errs[i] = do(node)
	}
	return errs
}

func lacksDisks(what string) func(cluster.Cluster) string {
	return func(c cluster.Cluster) string { return cmp.Or(lacksKiller(c), lacks[cluster.Disks](what)(c)) }
}
