package zookeeper

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
	"github.com/lockchaos/lockchaos/topology"
)

// reading locks the world for a read of a member, and the caller unlocks it. nil: the member does not serve clients.
func (e *Ensemble) reading(ctx context.Context, node string) *member {
	e.world.Act(ctx)
	for _, m := range e.members {
		if m.Name == node && m.Up && !m.Paused && m.serving && !e.world.Closed {
			return m
		}
	}
	return nil
}

// Sample reads the role of a member and the holders of keys, from its own data. Up is false if it
// does not serve clients, as in an election.
func (e *Ensemble) Sample(ctx context.Context, node string, keys []string) history.Sample {
	sample := history.Sample{Node: node}
	m := e.reading(ctx, node)
	defer e.world.Mu.Unlock()
	if m == nil {
		return sample
	}
	sample.Up, sample.Role, sample.Offset = true, "slave", m.tree.Zxid()
	if m.lead != nil {
		sample.Role = "master"
	}
	sample.Keys = m.keyStates(keys)
	return sample
}

// treeRead is who holds the keys according to a tree, as it was read last.
type treeRead struct {
	tree *znode.Tree
	zxid int64 // of the last transaction in the tree
	keys []string
	seen map[string]history.KeyState // free keys are left out
}

// keyStates is who holds the keys; nil if all are free. A member is sampled much more often than its tree changes. The
// caller must not change the result, and the world is locked.
func (m *member) keyStates(keys []string) map[string]history.KeyState {
	r := &m.read
	if r.tree == m.tree && r.zxid == m.tree.Zxid() && slices.Equal(r.keys, keys) {
		return r.seen
	}
	*r = treeRead{tree: m.tree, zxid: m.tree.Zxid(), keys: slices.Clone(keys)}
	for _, key := range keys {
		dir := topology.ZooKeeperRoot + "/" + key
		state, holders := cluster.QueueState(m.tree.Children(dir))
		for _, name := range holders {
			data, stat, _ := m.tree.Get(dir + "/" + name)
			state = cluster.AddHolder(state, string(data), stat.Czxid, stat.Owner)
		}
		if state.Owner == "" && state.Limit == 0 {
			continue
		}
		if r.seen == nil {
			r.seen = map[string]history.KeyState{}
		}
		r.seen[key] = state
	}
	return r.seen
}

// caughtUpWait bounds how long a list waits until a follower has the leader's commits.
const caughtUpWait = int64(time.Second)

// LockNodes lists the nodes of all locks, as lock/node, when the member has the leader's commits up to now, as after a
// sync. They stay until they are deleted or their session ends.
func (e *Ensemble) LockNodes(ctx context.Context, node string) (map[string]time.Duration, error) {
	m := e.reading(ctx, node)
	defer e.world.Mu.Unlock()
	committed, end := e.lastCommitted(), e.world.Now()+caughtUpWait
	if m != nil {
		e.world.Poll(end, func() bool { return !m.serving || m.tree.Zxid() >= committed })
	}
	if m == nil || !m.serving {
		return nil, fmt.Errorf("listing the nodes of %s: %w", node, cluster.ErrDown)
	}
	found := map[string]time.Duration{}
	for _, key := range m.tree.Children(topology.ZooKeeperRoot) {
		for _, name := range m.tree.Children(topology.ZooKeeperRoot + "/" + key) {
			found[key+"/"+name] = -1
		}
	}
	return found, nil
}

// lastCommitted is the zxid of the last transaction that a leader has committed.
func (e *Ensemble) lastCommitted() (zxid int64) {
	for _, m := range e.members {
		if m.serving && m.lead != nil {
			zxid = max(zxid, m.tree.Zxid())
		}
	}
	return zxid
}
