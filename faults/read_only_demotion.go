package faults

import (
	"context"
	"sync"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// read-only-demotion makes a replica of a master while clients are connected
// to it: they are answered READONLY, as by a master that a failover has demoted
// and whose address they have not forgotten. It follows nobody (the address that
// it is given answers nothing), so that it keeps its data.
var readOnlyDemotionSpec = Spec{
	Name:       "read-only-demotion",
	Doc:        "makes a read-only replica of a master (REPLICAOF nobody) until healed.",
	Source:     "redis/go-redis#2127, redisson#2639: READONLY after a failover",
	Targets:    []Target{Master, Deciding, Node},
	Topologies: []string{cluster.Single, cluster.Replicated, cluster.Quorum},
	Down:       true,
	Resources:  func(_ cluster.Cluster, node string) []Resource { return []Resource{{Name: "the role of " + node}} },
	Lacks:      unableToCommand,
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		d := &demoted{cluster: env.Cluster, admin: env.Cluster.(cluster.Admin), node: target}
		if _, err := d.admin.Do(ctx, target, "REPLICAOF", nobody, "1"); err != nil {
			return nil, err
		}
		return d, nil
	},
}

// nobody is an address of this machine at which nobody listens.
const nobody = "127.0.9.9"

type demoted struct {
	cluster cluster.Cluster
	admin   cluster.Admin
	node    string
	once    sync.Once
	err     error
}

// Bite waits until the node says itself that it is a replica.
func (d *demoted) Bite(ctx context.Context) (string, error) {
	return await(ctx, "a demoted "+d.node, func() (string, bool) {
		for _, s := range sampleAll(ctx, d.cluster) {
			if s.Node == d.node && s.Up && s.Role == "slave" {
				return d.node + " is a replica, and refuses writes", true
			}
		}
		return "", false
	})
}

func (d *demoted) Heal(ctx context.Context) (string, error) {
	d.once.Do(func() { _, d.err = d.admin.Do(ctx, d.node, "REPLICAOF", "NO", "ONE") })
	return d.node + " is a master again", d.err
}
