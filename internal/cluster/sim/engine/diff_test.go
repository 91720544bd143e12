package engine

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

var (
	sequences = flag.Int("sequences", 2000, "how many random sequences of commands to compare with Redis")
	diffSeed  = flag.Uint64("diffseed", 1, "seed of the first of them")
)

func digestOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// move is a command of one of the clients; pause: time passes first, so that a key with
// one millisecond to live expires.
type move struct {
	client int
	pause  bool
	brief  bool // its key lives for one millisecond, so it must not be executed later
	args   []string
}

func (m move) String() string {
	if m.pause {
		return "pause 5ms"
	}
	return fmt.Sprintf("%d: %q", m.client, m.args)
}

const clients = 3

// sequence draws the commands of three clients.
func (g *generator) sequence() []move {
	var moves []move
	g.theme = []string{"", "", "{s}", "{h}", "{l}", "{e}", "{z}", "{c}"}[g.IntN(8)]
	for range 10 + g.IntN(30) {
		m := move{client: g.IntN(clients)}
		if g.IntN(30) == 0 {
			moves = append(moves, g.watched()...)
		}
		switch n := g.IntN(100); {
		case n < 20:
			m.args = g.script()
		case n < 26:
			m.args = []string{[]string{"MULTI", "EXEC", "WATCH"}[g.IntN(3)]}
			if m.args[0] == "WATCH" {
				m.args = append(m.args, g.word("k"))
			}
		case n < 27:
			key := g.word("k")
			moves = append(moves, move{client: m.client, brief: true, args: []string{"PEXPIRE", key, "1"}},
				move{pause: true})
			m.args = []string{"EXISTS", key}
		default:
			m.args = g.command()
		}
		moves = append(moves, m)
	}
	return moves
}

// watched is a transaction that another client may abort.
func (g *generator) watched() []move {
	me := g.IntN(clients)
	key := g.word("s")
	moves := []move{{client: me, args: []string{"WATCH", key}}}
	if g.IntN(2) == 0 {
		moves = append(moves, move{client: (me + g.IntN(clients)) % clients, args: []string{"SET", key, g.word("v")}})
	}
	moves = append(moves, move{client: me, args: []string{"MULTI"}})
	if g.IntN(2) == 0 {
		moves = append(moves, move{client: (me + 1) % clients, args: g.command()})
	}
	return append(moves, move{client: me, args: g.command()}, move{client: me, args: []string{"EXEC"}})
}

// servers are the engine and redis-server, and three connections to each.
type servers struct {
	real    *realServer
	engine  *Server
	conns   [clients]*realConn
	users   [clients]*user
	unknown [clients]bool // has queued a command whose reply cannot be compared
	late    [clients]bool // has sent a command while it was blocked
	large   bool          // an argument is too long for a listpack: the order in a hash is undefined
}

func newServers(t testing.TB, server *realServer) *servers {
	b := &servers{real: server}
	t.Cleanup(b.close)
	return b
}

func (b *servers) close() {
	for _, c := range b.conns {
		if c != nil {
			c.Close()
		}
	}
}

// reset empties both servers, and reconnects all clients.
func (b *servers) reset() error {
	b.large = false
	b.engine = New(Config{Now: time.Now, Seed: 1})
	for _, args := range [][]string{
		{"ACL", "SETUSER", "default", "+@all", "allchannels"}, {"ACL", "LOG", "RESET"}, {"FLUSHALL"}, {"SCRIPT", "FLUSH"},
		{"CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction"},
	} {
		if v, err := b.real.control.ask(args...); err != nil || v.kind != '+' {
			return fmt.Errorf("%v answers %v: %w", args, v, err)
		}
	}
	for i := range clients {
		if b.conns[i] != nil {
			b.conns[i].Close()
		}
		var err error
		if b.conns[i], err = b.real.open(); err != nil {
			return err
		}
		u := &user{}
		u.Conn = b.engine.Open("127.0.0.1:1", func(p []byte) { u.got.Write(p) })
		b.users[i], b.unknown[i], b.late[i] = u, false, false
	}
	return nil
}

// run plays a sequence on both servers, and returns the first difference.
func (b *servers) run(moves []move) (at int, difference string) {
	if err := b.reset(); err != nil {
		return 0, err.Error()
	}
	for i, m := range moves {
		if m.pause {
			<-time.After(5 * time.Millisecond)
			continue
		}
		u := b.users[m.client]
		if m.brief && (u.Queueing() || u.wait != nil) || u.closed {
			continue
		}
		if among(m.args[0], "acl") && u.subscribed() { // Redis would free the client that executes the command
			continue
		}
		if d := b.step(m); d != "" {
			return i, d
		}
	}
	return 0, ""
}

func (b *servers) step(m move) string {
	b.users[m.client].Feed(encode(m.args))
	if _, err := b.conns[m.client].Write(encode(m.args)); err != nil {
		return "the connection to Redis is lost: " + err.Error()
	}
	if b.users[m.client].got.Len() == 0 {
		// A blocked command has no reply: one on another connection shows that it was executed.
		if _, err := b.real.control.ask("PING"); err != nil {
			return "Redis no longer replies: " + err.Error()
		}
	}
	t := b.tolerance(m)
	for i := range clients {
		got, err := values(b.users[i].got.String())
		if err != nil {
			return fmt.Sprintf("the engine writes what is no reply: %v", err)
		}
		b.users[i].got.Reset()
		want, err := b.conns[i].readAll(len(got))
		if err != nil {
			return err.Error()
		}
		if rest := b.conns[i].r.Buffered(); rest > 0 {
			extra, _ := b.conns[i].r.Peek(rest)
			return fmt.Sprintf("client %d: Redis says more: %q after %v", i, extra, want)
		}
		t := t
		if b.late[i] { // it is unknown which replies these are
			t = tolerance{kindOnly: b.unknown[i] || t.kindOnly, unordered: true, loose: true}
		}
		if !sameAll(t, got, want) {
			return fmt.Sprintf("client %d\n  engine: %v\n  Redis:  %v", i, got, want)
		}
	}
	return ""
}

// values parses everything that was pushed.
func values(text string) ([]value, error) {
	r := bufio.NewReader(strings.NewReader(text))
	var all []value
	for {
		if _, err := r.Peek(1); err != nil {
			return all, nil
		}
		v, err := readValue(r)
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
}

// tolerance is how to compare the reply to a move; EXEC's has the replies to all queued commands.
func (b *servers) tolerance(m move) tolerance {
	t := toleranceOf(m.args)
	for _, a := range m.args {
		b.large = b.large || len(a) > packBytes || a == "1e400" // has 401 digits
	}
	if b.large && among(m.args[0], "hgetall", "hkeys", "hvals", "hscan", "zscan") {
		t.unordered, t.pairs = true, among(m.args[0], "hgetall")
	}
	b.users[m.client].EachQueued(func(_ *Spec, args [][]byte) {
		var words []string
		for _, a := range args {
			words = append(words, string(a))
		}
		if toleranceOf(words).kindOnly || strings.HasSuffix(strings.ToLower(words[0]), "unsubscribe") {
			b.unknown[m.client] = true
		}
	})
	if b.users[m.client].got.Len() == 0 { // it is blocked
		b.late[m.client] = true
		b.unknown[m.client] = b.unknown[m.client] || t.kindOnly
	}
	if among(m.args[0], "exec") && !b.late[m.client] {
		t.kindOnly = b.unknown[m.client]
		b.unknown[m.client] = false
	}
	return t
}

func sameAll(t tolerance, got, want []value) bool {
	if len(got) != len(want) {
		return false
	}
	got, want = messages(got), messages(want)
	for i := range got {
		if !same(t, got[i], want[i]) {
			return false
		}
	}
	return true
}

// shrink makes a sequence with a difference as short as possible.
func (b *servers) shrink(moves []move) []move {
	for size := len(moves) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(moves); {
			shorter := slices.Delete(slices.Clone(moves), from, from+size)
			if _, d := b.run(shorter); d != "" {
				moves = shorter
			} else {
				from += size
			}
		}
	}
	return moves
}

// reproduces reports whether a sequence with a difference has one every time. Keys
// with milliseconds to live expire by the true clock: if the machine pauses between the
// engine's command and Redis', only one of them sees the key.
func (b *servers) reproduces(moves []move) bool {
	for range 3 {
		if _, d := b.run(moves); d == "" {
			return false
		}
	}
	return true
}

func TestSameAsRedis(t *testing.T) {
	b := newServers(t, startReal(t))
	scripts := append(lockScripts(t), ownScripts...)
	used := map[string]int{}
	n := *sequences
	if race.Short() {
		n = min(n, 200)
	}
	commands, failures, passing := 0, 0, 0
	for i := range n {
		seed := *diffSeed + uint64(i)
		moves := newGenerator(seed, time.Now().UnixMilli(), scripts).sequence()
		at, d := b.run(moves)
		for _, m := range moves {
			if spec := b.engine.Lookup(bytesList(m.args)); spec != nil {
				used[spec.Name]++
				commands++
			}
		}
		if d == "" {
			continue
		}
		if _, err := b.real.control.ask("PING"); err != nil {
			t.Fatalf("seed %d: Redis exited after\n  %s", seed, join(moves[:at+1]))
		}
		if !b.reproduces(moves) {
			t.Logf("seed %d: a difference that was not reproduced: %s", seed, d)
			if passing++; passing > 3+n/200 {
				t.Fatalf("%d differences were not reproduced: too many for the clock", passing)
			}
			continue
		}
		short := b.shrink(moves)
		_, d2 := b.run(short)
		t.Errorf("seed %d: after\n  %s\n%s\n(at first: %s)", seed, join(short), d2, d)
		if failures++; failures == 5 {
			t.FailNow()
		}
	}
	t.Logf("%d sequences, %d commands compared", n, commands)
	if n < 1000 {
		return
	}
	for _, name := range b.engine.Commands() {
		if !b.engine.table[name].has(container) && used[name] == 0 && !comparedElsewhere(name) {
			t.Errorf("%s was never compared", name)
		}
	}
}

// comparedElsewhere: quit ends the connection (the engine's own tests), and the reply to bgsave depends on whether an
// earlier one has finished (TestSnapshotsFail).
func comparedElsewhere(name string) bool { return name == "quit" || name == "bgsave" }

func bytesList(args []string) [][]byte {
	out := make([][]byte, len(args))
	for i, a := range args {
		out[i] = bytes.Clone([]byte(a))
	}
	return out
}

func join(moves []move) string {
	var lines []string
	for _, m := range moves {
		lines = append(lines, m.String())
	}
	return strings.Join(lines, "\n  ")
}
