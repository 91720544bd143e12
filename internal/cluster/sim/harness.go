package sim

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/resp"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
)

// harness is the harness's own connection to a server, bypassing the network: commands are executed immediately,
// and no virtual time passes.
type harness struct {
	node *node
	life int
	peer *engine.Conn
	got  []byte
	read keysRead // by keyStates
}

// keysRead are the keys of a sample as they were read last.
type keysRead struct {
	valid   bool
	version int64 // of the server
	keys    []string
	words   [][][]byte // the commands that read them
	exist   []bool     // by key
	seen    map[string]history.KeyState
}

// noKey is the reply of PTTL for a key that does not exist.
const noKey = -2

// keyStates are the states that [cluster.ReadKeys] reads. A server is sampled much more often than a lock changes: if
// nothing has changed, only the rest of the lease is requested. The world is locked.
func (h *harness) keyStates(keys []string) (map[string]history.KeyState, error) {
	s, left := h.node.server, make([]int64, len(keys))
	same := h.read.valid && h.read.version == s.Version() && slices.Equal(h.read.keys, keys)
	for i := 0; same && i < len(keys); i++ {
		left[i] = s.TTL(keys[i])
		same = h.read.exist[i] == (left[i] != noKey)
	}
	if !same {
		return h.readKeys(keys)
	}
	if h.read.seen == nil {
		return nil, nil
	}
	seen := make(map[string]history.KeyState, len(h.read.seen))
	for i, key := range keys {
		if state, held := h.read.seen[key]; held {
			state.TTL = time.Duration(left[i]) * time.Millisecond
			seen[key] = state
		}
	}
	return seen, nil
}

// readKeys reads the keys, and remembers the result if it depends on nothing but the version of the server and which
// keys exist. The permits of a semaphore depend on the time.
func (h *harness) readKeys(keys []string) (map[string]history.KeyState, error) {
	ask := func(commands ...[]string) ([]any, error) { return h.ask(commands...), nil }
	r := &h.read
	if !slices.Equal(r.keys, keys) {
		r.keys, r.words = append(r.keys[:0], keys...), argvs(cluster.KeyCommands(keys))
	}
	seen, err := cluster.ReadKeys(ask, keys, h.do(r.words))
	r.seen, r.version, r.exist, r.valid = seen, h.node.server.Version(), r.exist[:0], err == nil
	for _, key := range keys {
		state, held := seen[key]
		exists := h.node.server.Exists(key)
		r.exist = append(r.exist, exists)
		r.valid = r.valid && exists == held && state.Limit == 0
	}
	return seen, err
}

func newHarness(n *node) *harness {
	h := &harness{node: n, life: n.Life}
	h.peer = n.server.Open("harness", func(p []byte) { h.got = append(h.got, p...) })
	h.peer.Trust()
	return h
}

// ask carries out commands and reads their replies. The world is locked. A command that blocks has no reply yet.
func (h *harness) ask(commands ...[]string) []any { return h.do(argvs(commands)) }

func (h *harness) do(commands [][][]byte) []any {
	h.got = h.got[:0]
	before := h.node.World.Commands
	for _, words := range commands {
		h.peer.Do(words)
	}
	h.node.World.Commands = before // not commands of a client
	return h.replies()
}

func (h *harness) replies() []any {
	replies, _ := resp.ParseAll(h.got)
	return replies
}

// await waits for the reply of a blocked command, with the world unlocked, for d at most.
func (h *harness) await(d time.Duration) []any {
	w := h.node.World
	w.Poll(w.Now()+int64(d), func() bool { return len(h.got) > 0 })
	return h.replies()
}
