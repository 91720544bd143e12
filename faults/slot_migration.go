package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// slot-migration moves the slots of the locks' keys to another master of a Redis Cluster, as redis-cli does to
// rebalance: while it lasts, a key that is not (yet) at the source is redirected with ASK, and a script gets TRYAGAIN
// if one of its keys is there and another is not. A lock whose release leaves a record in a second key meets both.
var slotMigrationSpec = Spec{
	Name:       "slot-migration",
	Doc:        "migrates the slots of the locks' keys to a Redis Cluster master; healing moves the keys and ends it.",
	Source:     "redis.io, Redis Cluster specification: live reconfiguration; TRYAGAIN for commands with several keys",
	Class:      history.FaultMoves,
	Object:     "slots",
	Verb:       "took over the slots of the locks",
	Affects:    history.AffectsData + " " + history.AffectsCommands + " " + history.AffectsSlots,
	Targets:    []Target{Master, Node},
	Topologies: []string{cluster.Sharded},
	Lacks:      lacksAdmin,
	Resources: func(cluster.Cluster, string) []Resource {
		return []Resource{{Name: "the slots of the locks"}}
	},
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		m, err := newMigration(ctx, env, target)
		if err != nil {
			return nil, err
		}
		before, err := m.redirects(ctx)
		if err != nil {
			return nil, err
		}
		in := &injection{
			observe: awaitMore("any redirection of a client", "ASK or TRYAGAIN reply", before, m.redirects),
			undo:    m.finish,
		}
		return in.started(ctx, m.start(ctx))
	},
}

// migration moves slots to one node.
type migration struct {
	admin  cluster.Admin
	nodes  []cluster.Node
	target string
	secret string            // password of the servers; empty: none
	ids    map[string]string // by node: its name in the cluster
	source map[int64]string  // by slot: the node that has it
	opened []int64           // slots that migrate
}

// newMigration finds the slots of the keys that the target does not have. Each node is asked for its own slots: after
// another migration the others may not have heard of it yet.
func newMigration(ctx context.Context, env Env, target string) (*migration, error) {
	m := &migration{admin: env.Cluster.(cluster.Admin), nodes: env.Cluster.Nodes(), target: target,
		ids: map[string]string{}, source: map[int64]string{}, secret: env.Cluster.Endpoints(0).Password}
	for _, n := range m.nodes {
		id, err := m.admin.Do(ctx, n.Name, "CLUSTER", "MYID")
		if err != nil {
			return nil, err
		}
		m.ids[n.Name] = fmt.Sprint(id)
	}
	slots := make([]int64, len(env.Keys))
	for i, key := range env.Keys {
		slot, err := number(ctx, m.admin, target, "CLUSTER", "KEYSLOT", key)
		if err != nil {
			return nil, err
		}
		slots[i] = slot
	}
	for _, n := range m.nodes {
		if n.Name == target {
			continue
		}
		ranges, err := m.admin.Do(ctx, n.Name, "CLUSTER", "SLOTS")
		if err != nil {
			return nil, err
		}
		for _, slot := range slots {
			if m.nodeWith(slot, ranges) == n.Name {
				m.source[slot] = n.Name
			}
		}
	}
	if len(m.source) == 0 {
		return nil, fmt.Errorf("%s has the slots of all locks: there is nothing to migrate to it", target)
	}
	return m, nil
}

// nodeWith is the master of a slot, by a reply to CLUSTER SLOTS: first slot, last slot, its address and id, replicas.
func (m *migration) nodeWith(slot int64, ranges any) string {
	rows, _ := ranges.([]any)
	for _, row := range rows {
		fields, _ := row.([]any)
		if len(fields) < 3 {
			continue
		}
		first, _ := fields[0].(int64)
		last, _ := fields[1].(int64)
		master, _ := fields[2].([]any)
		if slot < first || slot > last || len(master) < 3 {
			continue
		}
		for name, id := range m.ids { // order does not matter: ids are unique
			if id == master[2] {
				return name
			}
		}
	}
	return ""
}

// slots are the slots to move, in order.
func (m *migration) slots() []int64 {
	return slices.Sorted(maps.Keys(m.source))
}

// start opens the slots: first at the target, so that no client is redirected to a node that refuses it.
func (m *migration) start(ctx context.Context) error {
	for _, slot := range m.slots() {
		source := m.source[slot]
		_, err := m.admin.Do(ctx, m.target, "CLUSTER", "SETSLOT", slot, "IMPORTING", m.ids[source])
		if err == nil {
			_, err = m.admin.Do(ctx, source, "CLUSTER", "SETSLOT", slot, "MIGRATING", m.ids[m.target])
		}
		if err != nil {
			_, _ = m.admin.Do(ctx, m.target, "CLUSTER", "SETSLOT", slot, "STABLE")
			return fmt.Errorf("migrating slot %d from %s to %s: %w", slot, source, m.target, err)
		}
		m.opened = append(m.opened, slot)
	}
	return nil
}

// redirects counts the error replies of a migration, on all nodes that take part.
func (m *migration) redirects(ctx context.Context) (sum int, err error) {
	nodes := []string{m.target}
	for _, slot := range m.slots() {
		if source := m.source[slot]; !slices.Contains(nodes, source) {
			nodes = append(nodes, source)
		}
	}
	for _, node := range nodes {
		for _, code := range []string{"ASK", "TRYAGAIN"} {
			n, err := errorReplies(code)(ctx, m.admin, node)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}

// finish moves the keys and assigns the slots, at the target first: it announces them to the others.
func (m *migration) finish(ctx context.Context) (how string, err error) {
	var errs []error
	moved := 0
	for _, slot := range m.opened {
		n, err := m.moveKeys(ctx, slot)
		moved += n
		errs = append(errs, err)
		if err != nil {
			continue // the slot stays open: its keys are on two nodes
		}
		for _, node := range []string{m.target, m.source[slot]} {
			_, err := m.admin.Do(ctx, node, "CLUSTER", "SETSLOT", slot, "NODE", m.ids[m.target])
			errs = append(errs, err)
		}
	}
	return fmt.Sprintf("%s and %s moved to %s", format.Count(len(m.opened), "slot"), format.Count(moved, "key"), m.target),
		errors.Join(errs...)
}

// moveKeys moves the keys of a slot, until there are none: clients may add some meanwhile.
func (m *migration) moveKeys(ctx context.Context, slot int64) (moved int, err error) {
	const atOnce, timeoutMS = 100, 500
	at := slices.IndexFunc(m.nodes, func(n cluster.Node) bool { return n.Name == m.target })
	for {
		reply, err := m.admin.Do(ctx, m.source[slot], "CLUSTER", "GETKEYSINSLOT", slot, atOnce)
		keys, _ := reply.([]any)
		if err != nil || len(keys) == 0 {
			return moved, err
		}
		// A server does nothing else until MIGRATE has its reply: a gate, on a busy machine, would stop it for as long as
		// clients may wait. No gate knows the caller either, because MIGRATE connects from another address.
		host, port, err := net.SplitHostPort(cmp.Or(m.nodes[at].PastGate, m.nodes[at].Addr))
		if err != nil {
			return moved, err
		}
		command := []any{"MIGRATE", host, port, "", 0, timeoutMS}
		if m.secret != "" {
			command = append(command, "AUTH", m.secret)
		}
		command = append(append(command, "KEYS"), keys...)
		if _, err := m.admin.Do(ctx, m.source[slot], command...); err != nil {
			return moved, fmt.Errorf("moving keys of slot %d: %w", slot, err)
		}
		moved += len(keys)
	}
}
