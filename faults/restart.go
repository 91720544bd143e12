package faults

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// restart ends a server and starts it again with what its disk has kept: an
// upgrade, a supervisor that finds it dead. Without a duration it comes back at
// once; with one, after so long, as an operator does who waits until every lease
// that it may have granted has run out (antirez 2016: delayed restarts).
var restartSpec = Spec{
	Name:      "restart",
	Doc:       "ends a server (SIGKILL) and starts it again with what its disk has kept, at once or after a while (for).",
	Source:    "redis.io, Distributed Locks: performance, crash recovery and fsync",
	Targets:   []Target{Master, Replica, Deciding, Node, Nodes, Minority, Majority},
	OneShot:   true,
	Down:      true,
	Resources: serverProcess,
	Lacks:     func(c cluster.Cluster) string { return can[cluster.Killer](c, "kill a server") },
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		nodes := env.Cluster.(cluster.Killer)
		return down(ctx, target, nodes.Kill, nodes.Restart)
	},
}

// downed is servers that were ended in some way and come back in some way.
type downed struct {
	nodes  []string
	revive func(ctx context.Context, node string) error
	once   sync.Once
	err    error
}

// undoWait bounds bringing back what was ended in vain.
const undoWait = 15 * time.Second

// down ends the nodes of target and remembers how to bring them back. If one of
// them cannot be ended, those before it come back at once, also when the reason is that
// ctx is over: nobody else would do it.
func down(ctx context.Context, target string, end, revive func(context.Context, string) error) (Injection, error) {
	d := &downed{revive: revive}
	for _, node := range names(target) {
		if err := end(ctx, node); err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWait)
			defer cancel()
			_, undone := d.Heal(undo)
			return nil, errors.Join(err, undone)
		}
		d.nodes = append(d.nodes, node)
	}
	return d, nil
}

// Bite has nothing to wait for: whoever ended a server returned when it was gone.
func (d *downed) Bite(context.Context) (string, error) { return d.all() + " gone", nil }

func (d *downed) all() string {
	if len(d.nodes) == 1 {
		return d.nodes[0] + " is"
	}
	return strings.Join(d.nodes, ", ") + " are"
}

func (d *downed) Heal(ctx context.Context) (string, error) {
	d.once.Do(func() {
		errs := make([]error, len(d.nodes))
		for i, node := range d.nodes {
			errs[i] = d.revive(ctx, node)
		}
		d.err = errors.Join(errs...)
	})
	return d.all() + " running again", d.err
}
