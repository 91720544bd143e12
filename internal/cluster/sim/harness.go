package sim

import (
	"time"

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
}

func newHarness(n *node) *harness {
	h := &harness{node: n, life: n.life}
	h.peer = n.server.Open("harness", func(p []byte) { h.got = append(h.got, p...) })
	h.peer.Trust()
	return h
}

// ask carries out commands and reads their replies. The world is locked. A command that blocks has no reply yet.
func (h *harness) ask(commands ...[]string) []any {
	h.got = h.got[:0]
	before := h.node.world.commands
	for _, words := range commands {
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		h.peer.Do(args)
	}
	h.node.world.commands = before // not commands of a client
	return h.replies()
}

func (h *harness) replies() []any {
	var replies []any
	for rest := h.got; len(rest) > 0; {
		reply, after, err := resp.Parse(rest)
		if err != nil {
			break
		}
		replies, rest = append(replies, reply), after
	}
	return replies
}

// await waits for the reply of a blocked command, with the world unlocked, for d at most.
func (h *harness) await(d time.Duration) []any {
	w := h.node.world
	for end := w.now() + int64(d); len(h.got) == 0 && w.now() < end; {
		w.mu.Unlock()
		time.Sleep(time.Millisecond) // whole milliseconds keep the caller on its slot
		w.mu.Lock()
	}
	return h.replies()
}
