package faults

import (
	"context"
	"sync"

	"github.com/lockchaos/lockchaos/cluster"
)

// restart ends a server and starts it again with what its disk has kept: an
// upgrade, a supervisor that finds it dead. Without a duration it comes back at
// once; with one, after so long, as an operator does who waits until every lease
// that it may have granted has run out (antirez 2016: delayed restarts).
var restartSpec = Spec{
	Name:    "restart",
	Doc:     "ends a server (SIGKILL) and starts it again with what its disk has kept, at once or after a while (for).",
	Source:  "redis.io, Distributed Locks: performance, crash recovery and fsync",
	Targets: []Target{Master, Replica, Deciding, Node},
	Stroke:  true,
	Grips:   serverProcess,
	Unable:  func(c cluster.Cluster) string { return can[cluster.Killer](c, "kill a server") },
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		nodes := env.Cluster.(cluster.Killer)
		return down(ctx, target, nodes.Kill, nodes.Restart)
	},
}

// downed is a server that was ended in some way and comes back in some way.
type downed struct {
	node   string
	revive func(ctx context.Context, node string) error
	once   sync.Once
	err    error
}

// down ends node and remembers how to bring it back.
func down(ctx context.Context, node string, end, revive func(context.Context, string) error) (Injection, error) {
	if err := end(ctx, node); err != nil {
		return nil, err
	}
	return &downed{node: node, revive: revive}, nil
}

// Bite has nothing to wait for: whoever ended the server returned when it was gone.
func (d *downed) Bite(context.Context) (string, error) { return d.node + " is gone", nil }

func (d *downed) Heal(ctx context.Context) (string, error) {
	d.once.Do(func() { d.err = d.revive(ctx, d.node) })
	return d.node + " was started again", d.err
}
