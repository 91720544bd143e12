package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// NodeRights are the permissions (ACL, world:anyone) of the node of a lock on ZooKeeper: all of them, or without
// writing it, and creating and deleting nodes below it.
func NodeRights(writable bool) int32 {
	const read, admin, all = 1, 16, 31
	if writable {
		return all
	}
	return read | admin
}

// QueueState derives the state of a lock from the names of its nodes on ZooKeeper, and which of them hold it. Of a
// semaphore only the sums are known to samples.
func QueueState(names []string) (state history.KeyState, holders []string) {
	type node struct {
		name     string
		sequence int32
	}
	nodes := make([]node, len(names))
	for i, name := range names {
		nodes[i] = node{name, sequenceOf(name)}
	}
	slices.SortFunc(nodes, func(a, b node) int { return int(a.sequence - b.sequence) })
	return OrderedQueueState(format.Texts(nodes, func(n node) string { return n.name }))
}

// OrderedQueueState is [QueueState] of names in the order of the queue, such as by create revision. The words in them
// are from package lock/internal/queues.
func OrderedQueueState(names []string) (state history.KeyState, holders []string) {
	state.TTL = -1
	for i, name := range names {
		word := wordOf(name)
		n, total, permits := permitsOf(word)
		switch {
		case permits && (i == 0 || state.Permits > 0):
			if state.Limit = total; state.Permits+n > total {
				return state, nil
			}
			state.Permits += n
		case permits || state.Permits > 0:
			return state, holders
		case word == "read" && (i == 0 || state.Mode == "read"):
			state.Mode, holders = "read", append(holders, name)
		case i == 0:
			if holders = []string{name}; slices.ContainsFunc(names, func(n string) bool { return wordOf(n) == "read" }) {
				state.Mode = "write"
			}
			return state, holders
		default:
			return state, holders
		}
	}
	return state, holders
}

// AddHolder adds a holder to the state of a lock: the data of its node or key, its czxid or create revision, and the
// session or lease that it ends with. The token and the session of the first one count.
func AddHolder(state history.KeyState, owner string, token, session int64) history.KeyState {
	if state.Owner != "" {
		if state.Owners == nil {
			state.Owners = []string{state.Owner}
		}
		state.Owners = append(state.Owners, owner)
		slices.Sort(state.Owners)
		state.Owner = state.Owners[0]
		return state
	}
	state.Owner, state.Token, state.Session = owner, uint64(token), fmt.Sprintf("%#x", session)
	return state
}

// wordOf is the purpose of a node or key: the second part of its name.
func wordOf(name string) string {
	_, rest, _ := strings.Cut(name, "-")
	word, _, _ := strings.Cut(rest, "-")
	return word
}

// permitsOf reads the word of a request for permits, such as 2of5.
func permitsOf(word string) (n, total int, ok bool) {
	a, b, found := strings.Cut(word, "of")
	n, err1 := strconv.Atoi(a)
	total, err2 := strconv.Atoi(b)
	return n, total, found && err1 == nil && err2 == nil
}

// sequenceOf is the number at the end of a node's name, which the server has appended: ten digits, or a minus sign and
// ten digits after 2³¹ nodes.
func sequenceOf(name string) int32 {
	const digits = 10
	number := name[max(0, len(name)-digits):]
	n, _ := strconv.ParseInt(number, 10, 64)
	if cut := len(name) - len(number); cut >= 2 && name[cut-2:cut] == "--" {
		n = -n
	}
	return int32(n)
}
