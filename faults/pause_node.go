package faults

import (
	"context"
	"errors"
	"sync"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// pause-node stops a server without ending it: its connections stay open, its
// keys do not expire until it goes on, and a master that was replaced
// meanwhile believes for a while that it still is one (a stop of the virtual
// machine, a swapping host).
var pauseNodeSpec = Spec{
	Name:    "pause-node",
	Doc:     "stops a server without ending it (SIGSTOP) until healed.",
	Source:  "jepsen hammer-time; redis.io Sentinel: a partitioned master",
	Targets: []Target{Master, Replica, Node},
	Down:    true,
	Lacks:   func(c cluster.Cluster) string { return can[cluster.Pauser](c, "pause a server") },
	Inject:  injectPauseNode,
}

type pausedNode struct {
	nodes cluster.Pauser
	node  string
	once  sync.Once
	how   string
	err   error
}

func injectPauseNode(ctx context.Context, env Env, target string) (Injection, error) {
	p := &pausedNode{nodes: env.Cluster.(cluster.Pauser), node: target}
	if err := p.nodes.Pause(ctx, target); err != nil {
		return nil, err
	}
	return p, nil
}

// Bite has nothing to wait for: Pause returned when the process stood still.
func (p *pausedNode) Bite(context.Context) (string, error) { return p.node + " stands still", nil }

func (p *pausedNode) Heal(ctx context.Context) (string, error) {
	p.once.Do(func() {
		p.how, p.err = p.node+" goes on", p.nodes.Resume(ctx, p.node)
		if errors.Is(p.err, cluster.ErrDown) { // another fault has killed it, and will start it again
			p.how, p.err = p.node+" is gone, and cannot go on", nil
		}
	})
	return p.how, p.err
}
