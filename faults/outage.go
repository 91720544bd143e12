package faults

import (
	"context"
	"errors"
	"strings"
	"time"

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

// undoLimit bounds the recovery of servers after an injection that failed.
const undoLimit = 15 * time.Second

// inject takes the nodes of target down. If one of them cannot be taken down, those before it are brought back at once,
// also when the reason is that ctx has ended: the caller gets no Injection to heal.
func (o outage) inject(ctx context.Context, target string) (Injection, error) {
	nodes := nodesOf(target)
	for i, node := range nodes {
		if err := o.down(ctx, node); err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
			defer cancel()
			return nil, errors.Join(err, o.bringBack(undo, nodes[:i]))
		}
	}
	return &injection{observe: already(o.effect), undo: func(ctx context.Context) (string, error) {
		return strings.Join(nodes, ", ") + " " + o.healed, o.bringBack(ctx, nodes)
	}}, nil
}

// bringBack tries all nodes, also when one fails.
func (o outage) bringBack(ctx context.Context, nodes []string) error {
	errs := make([]error, len(nodes))
	for i, node := range nodes {
		errs[i] = o.up(ctx, node)
	}
	return errors.Join(errs...)
}

func lacksDisks(what string) func(cluster.Cluster) string {
	return func(c cluster.Cluster) string {
		if why := lacksKiller(c); why != "" {
			return why
		}
		return lacks[cluster.Disks](c, what)
	}
}
