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

// SetWritable is described at [cluster.Entries]. It returns when the change is committed.
func (e *Ensemble) SetWritable(ctx context.Context, node, lock string, writable bool) (changed bool, err error) {
	m := e.reading(ctx, node)
	defer e.world.Mu.Unlock()
	leader := e.leader()
	if m == nil || leader == nil {
		return false, fmt.Errorf("changing the rights at %s: %w", node, cluster.ErrDown)
	}
	path := topology.ZooKeeperRoot + "/" + lock
	version := func() int32 {
		_, stat, _ := leader.tree.Get(path)
		return stat.Aversion
	}
	if !there(leader, path) {
		return false, nil
	}
	before := version()
	leader.lead.propose(znode.Request{
		Op: znode.OpSetACL, Path: path, Version: -1,
		ACL: []znode.ACL{{Perms: cluster.NodeRights(writable), Scheme: "world", ID: "anyone"}},
	}, noSession, origin{})
	done := func() bool { return version() != before }
	e.world.Poll(e.world.Now()+caughtUpWait, func() bool { return done() || leader.lead == nil })
	if !done() {
		return false, fmt.Errorf("changing the rights of %s: %w", path, cluster.ErrDown)
	}
	return true, nil
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
