package sim

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
)

// Slots that were moved one by one. What Redis does with all slots, in a bitmap, is done here with the few that have
// left the master of their shard.

// slotMove is a slot that belongs to another node than its shard, since an epoch.
type slotMove struct {
	owner int
	epoch int64
}

// resharding is the knowledge of a node about slots that were moved, or are being moved.
type resharding struct {
	moved     map[int]slotMove
	migrating map[int]int // slot to the node that it goes to
	importing map[int]int // slot to the node that it comes from
	asking    *engine.Conn
}

func newResharding() resharding {
	return resharding{moved: map[int]slotMove{}, migrating: map[int]int{}, importing: map[int]int{}}
}

// slotOwner is the node that has a slot.
func (n *node) slotOwner(slot int) int {
	if move, ok := n.bus.slots.moved[slot]; ok {
		return move.owner
	}
	return n.bus.owner[n.cluster.shardOf(slot)]
}

// openSlot decides about a command for a slot that is migrating or being imported (getNodeByQuery): served is whether
// the node executes it, and redirection the error if not, if there is one.
func (n *node) openSlot(slot int, keys [][]byte, asking bool) (served bool, redirection string) {
	r := &n.bus.slots
	_, imports := r.importing[slot]
	to, migrates := r.migrating[slot]
	if !imports && !migrates {
		return false, ""
	}
	missing := 0
	for _, key := range keys {
		if !n.server.Exists(string(key)) {
			missing++
		}
	}
	const again = "TRYAGAIN Multiple keys request during rehashing of slot"
	switch {
	case migrates && missing > 0 && missing < len(keys):
		return false, again
	case migrates && missing > 0:
		return false, "ASK " + strconv.Itoa(slot) + " " + n.cluster.nodes[to].Addr
	case migrates:
		return true, ""
	case asking && missing > 0 && len(keys) > 1:
		return false, again
	}
	return asking, ""
}

// takeAsking reports whether the command before this one was ASKING on the same connection.
func (n *node) takeAsking(c *engine.Conn) bool {
	asked := n.bus.slots.asking == c
	if asked {
		n.bus.slots.asking = nil
	}
	return asked
}

func (n *node) cmdAsking(c *engine.Conn, _ [][]byte) {
	n.bus.slots.asking = c
	c.WriteStatus("OK")
}

// cmdSetSlot is CLUSTER SETSLOT slot IMPORTING|MIGRATING|NODE id, or STABLE.
func (n *node) cmdSetSlot(c *engine.Conn, args [][]byte) {
	r := &n.bus.slots
	slot, err := strconv.Atoi(string(args[2]))
	c.FailIf(err != nil || slot < 0 || slot >= slots, "ERR Invalid or out of range slot")
	c.FailIf(n.masterIndex() >= 0, "ERR Please use SETSLOT only with masters.")
	how, other := strings.ToLower(string(args[3])), -1
	if len(args) == 5 {
		other = slices.IndexFunc(n.cluster.nodes, func(o *node) bool { return o.bus.id == string(args[4]) })
		c.FailIf(other < 0, "ERR I don't know about node "+string(args[4]))
	}
	mine := n.slotOwner(slot) == n.Index
	switch {
	case how == "migrating" && other >= 0 && !mine:
		c.Fail("ERR I'm not the owner of hash slot " + strconv.Itoa(slot))
	case how == "importing" && other >= 0 && mine:
		c.Fail("ERR I'm already the owner of hash slot " + strconv.Itoa(slot))
	case how == "migrating" && other >= 0:
		r.migrating[slot] = other
	case how == "importing" && other >= 0:
		r.importing[slot] = other
	case how == "stable" && other < 0:
		delete(r.migrating, slot)
		delete(r.importing, slot)
	case how == "node" && other >= 0 && mine && other != n.Index && len(n.keysInSlot(slot)) > 0:
		c.Fail("ERR Can't assign hashslot " + strconv.Itoa(slot) +
			" to a different node while I still hold keys for this hash slot.")
	case how == "node" && other >= 0:
		n.assign(slot, other)
	default:
		c.Fail("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")
	}
	c.WriteStatus("OK")
}

// closeSlots ends the migrations of a node that becomes a replica (clusterCloseAllSlots).
func (n *node) closeSlots() {
	if n.bus != nil {
		clear(n.bus.slots.migrating)
		clear(n.bus.slots.importing)
	}
}

// assign gives a slot to a node. One that has imported it takes a new epoch, without asking the others, and announces
// it.
func (n *node) assign(slot, owner int) {
	b := n.bus
	r := &b.slots
	delete(r.migrating, slot)
	epoch := r.moved[slot].epoch
	_, imported := r.importing[slot]
	if imported && owner == n.Index {
		delete(r.importing, slot)
		b.epoch++
		b.config, epoch = b.epoch, b.epoch
	}
	n.moveSlot(slot, slotMove{owner, epoch})
	if imported {
		for _, p := range b.peers {
			p.send(busPong{n.header()})
		}
	}
}

// moveSlot notes the owner of a slot. A node that had it ends the subscriptions to its channels.
func (n *node) moveSlot(slot int, move slotMove) {
	had := n.slotOwner(slot) == n.Index
	n.bus.slots.moved[slot] = move
	if had && move.owner != n.Index {
		n.endSubscriptions(func(s int) bool { return s == slot })
	}
}

// endSubscriptions ends the subscriptions to the channels of slots that the node, or its master, no longer has
// (removeChannelsInSlot).
func (n *node) endSubscriptions(of func(slot int) bool) {
	n.afterCommands = append(n.afterCommands, func() {
		n.server.EndShardSubscriptions(func(channel string) bool { return of(keySlot([]byte(channel))) })
	})
}

// ownMoves are the moved slots of a node, for its header.
func (n *node) ownMoves() map[int]slotMove {
	var own map[int]slotMove
	for slot, move := range n.bus.slots.moved { // order does not matter: a map is filled
		if move.owner == n.Index {
			if own == nil {
				own = map[int]slotMove{}
			}
			own[slot] = move
		}
	}
	return own
}

// learnMoves takes over a node's report of its moved slots.
func (n *node) learnMoves(moves map[int]slotMove) {
	learned := false
	for _, slot := range slices.Sorted(maps.Keys(moves)) {
		if known, ok := n.bus.slots.moved[slot]; !ok || known.epoch < moves[slot].epoch {
			n.moveSlot(slot, moves[slot])
			learned = true
		}
	}
	if learned {
		n.done()
	}
}

// inheritMoves gives a replica that takes over the moved slots of its master.
func (n *node) inheritMoves(old int, epoch int64) {
	for slot, move := range n.bus.slots.moved { // order does not matter: each slot by itself
		if move.owner == old {
			n.bus.slots.moved[slot] = slotMove{n.Index, epoch}
		}
	}
}

// slotRange is consecutive slots of one node.
type slotRange struct{ first, last, owner int }

// slotRanges are the owners of all slots: each shard's, cut at the slots that were moved.
func (n *node) slotRanges() (all []slotRange) {
	moved := slices.Sorted(maps.Keys(n.bus.slots.moved))
	for shard, owner := range n.bus.owner {
		first, last := n.cluster.bounds(shard)
		for _, slot := range moved {
			if slot < first || slot > last || n.slotOwner(slot) == owner {
				continue
			}
			if slot > first {
				all = append(all, slotRange{first, slot - 1, owner})
			}
			all = append(all, slotRange{slot, slot, n.slotOwner(slot)})
			first = slot + 1
		}
		if first <= last {
			all = append(all, slotRange{first, last, owner})
		}
	}
	return all
}

func (n *node) keysInSlot(slot int) (names []string) {
	for _, key := range n.server.KeyNames() {
		if keySlot([]byte(key)) == slot {
			names = append(names, key)
		}
	}
	return names
}

// cmdGetKeysInSlot is CLUSTER GETKEYSINSLOT slot count.
func (n *node) cmdGetKeysInSlot(c *engine.Conn, args [][]byte) {
	slot, err1 := strconv.Atoi(string(args[2]))
	count, err2 := strconv.Atoi(string(args[3]))
	c.FailIf(err1 != nil || err2 != nil || slot < 0 || slot >= slots || count < 0, "ERR Invalid slot or number of keys")
	names := n.keysInSlot(slot)
	c.Write(names[:min(len(names), count)])
}

// noAuth is the reply of a server with another password.
func noAuth(password string) string {
	if password == "" {
		return "NOAUTH Authentication required."
	}
	return "WRONGPASS invalid username-password pair or user is disabled."
}

// cmdMigrate is MIGRATE host port "" db timeout [AUTH password] KEYS key…. The keys move at the instant of the
// command, past the gates; the target must be reachable.
func (n *node) cmdMigrate(c *engine.Conn, args [][]byte) {
	password, keysAt := "", 7
	if len(args) > 8 && strings.EqualFold(string(args[6]), "auth") {
		password, keysAt = string(args[7]), 9
	}
	c.FailIf(len(args) < keysAt || len(args[3]) > 0 || !strings.EqualFold(string(args[keysAt-1]), "keys"),
		"ERR syntax error")
	c.FailIf(password != n.cluster.config.Password, "ERR Target instance replied with error: "+noAuth(password))
	h := n.World.Addresses[string(args[1])+":"+string(args[2])]
	c.FailIf(h == nil || !h.Up || h.Paused, "IOERR error or timeout reading to target instance")
	if r := &n.bus.slots; len(args) > keysAt { // a slot that is open is the node's own business
		slot := keySlot(args[keysAt])
		_, migrates := r.migrating[slot]
		_, imports := r.importing[slot]
		elsewhere := n.routed(args[keysAt:], false, false)
		c.FailIf(elsewhere != "" && !migrates && !imports, elsewhere)
	}
	var names []string
	for _, key := range args[keysAt:] {
		if n.server.Exists(string(key)) {
			names = append(names, string(key))
		}
	}
	if len(names) == 0 {
		c.WriteStatus("NOKEY")
		return
	}
	target := h.Program.(*node)
	n.afterCommands = append(n.afterCommands, func() {
		for _, key := range n.server.Keys() {
			if key.DB == 0 && slices.Contains(names, key.Name) {
				for _, command := range rebuildCommands(n.harness, key) {
					target.harness.peer.Do(command)
				}
				n.harness.peer.Do(argv("DEL", key.Name))
			}
		}
		target.done()
	})
	c.WriteStatus("OK")
}
