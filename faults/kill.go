package faults

import (
	"context"
	"sync"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// kill ends a server as the kernel's OOM killer or a power switch does; what
// it had not replicated is gone. Healing starts it again with what its disk
// kept, which by default is nothing. It cannot lose what the operating system
// had not written yet: for that the machine has to die, not the process.
var killSpec = Spec{
	Name:      "kill",
	Doc:       "ends a server at once (SIGKILL); healing starts it again with what its disk has kept.",
	Source:    "redis.io, Distributed Locks: why failover-based implementations are not enough",
	Targets:   []Target{Master, Replica, Node},
	HealLast:  true,
	Down:      true,
	Resources: serverProcess,
	Lacks:     func(c cluster.Cluster) string { return can[cluster.Killer](c, "kill a server") },
	Inject:    injectKill,
}

type killed struct {
	all   cluster.Cluster
	nodes cluster.Killer
	node  string
	once  sync.Once
	how   string
	err   error
}

func injectKill(ctx context.Context, env Env, target string) (Injection, error) {
	k := &killed{all: env.Cluster, nodes: env.Cluster.(cluster.Killer), node: target}
	if err := k.nodes.Kill(ctx, target); err != nil {
		return nil, err
	}
	return k, nil
}

// Bite has nothing to wait for: Kill returned when the process was gone.
func (k *killed) Bite(context.Context) (string, error) { return k.node + " is gone", nil }

func (k *killed) Heal(ctx context.Context) (string, error) {
	k.once.Do(func() {
		k.how, k.err = k.node+" was started again", k.nodes.Restart(ctx, k.node)
		if k.err != nil && answers(ctx, k.all, k.node) { // it was killed twice, and healed once
			k.how, k.err = k.node+" runs already", nil
		}
	})
	return k.how, k.err
}
