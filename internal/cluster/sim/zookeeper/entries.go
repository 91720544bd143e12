package zookeeper

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
	"github.com/lockchaos/lockchaos/topology"
)

// DeleteHeld deletes the nodes of the holders of a lock that a member knows, through the leader, and returns when that
// is committed. A member that is behind may know nodes that are gone; these are not counted. See [cluster.Entries].
func (e *Ensemble) DeleteHeld(ctx context.Context, node, lock string) (deleted int, err error) {
	m := e.reading(ctx, node)
	defer e.world.Mu.Unlock()
	leader := e.leader()
	if m == nil || leader == nil {
		return 0, fmt.Errorf("deleting from %s: %w", node, cluster.ErrDown)
	}
	dir := topology.ZooKeeperRoot + "/" + lock
	_, known := cluster.QueueState(m.tree.Children(dir))
	var holders []string
	for _, name := range known {
		if _, _, found := leader.lead.prepared.Get(dir + "/" + name); found {
			holders = append(holders, name)
		}
	}
	for _, name := range holders {
		leader.lead.propose(znode.Request{Op: znode.OpDelete, Path: dir + "/" + name, Version: -1}, noSession, origin{})
	}
	end := e.world.Now() + caughtUpWait
	for _, name := range holders {
		e.world.Poll(end, func() bool { return !there(leader, dir+"/"+name) || leader.lead == nil })
		if !there(leader, dir+"/"+name) {
			deleted++
		}
	}
	return deleted, nil
}

func there(m *member, path string) bool {
	_, _, found := m.tree.Get(path)
	return found
}

// leader is the member that leads and serves clients; nil: there is none.
func (e *Ensemble) leader() *member {
	for _, m := range e.members {
		if m.Up && !m.Paused && m.serving && m.lead != nil {
			return m
		}
	}
	return nil
}
