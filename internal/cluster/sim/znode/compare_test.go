package znode_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

var (
	sequences = flag.Int("znode.sequences", 40, "random sequences that are compared with a real ZooKeeper server")
	length    = flag.Int("znode.length", 60, "requests of each of them")
	firstSeed = flag.Uint64("znode.seed", 1, "seed of the first of them")
)

// TestRealServer: random requests of several sessions, one at a time, have the same replies and notifications from a
// real ZooKeeper server as from this package.
func TestRealServer(t *testing.T) {
	c := comparison{t: t, addr: startServer(t)}
	if _, err := c.admin.connect(t.Context(), c.addr); err != nil {
		t.Fatal(err)
	}
	for i := range *sequences {
		seed := *firstSeed + uint64(i)
		steps := sequence(seed, *length)
		if at, _ := c.compare(steps); at >= 0 {
			steps = c.shrink(steps[:at+1])
			_, difference := c.compare(steps)
			for n, s := range steps {
				t.Logf("%d. %v", n+1, s)
			}
			t.Fatalf("seed %d: the last of these requests differs (-real +znode):\n%s", seed, difference)
		}
	}
	t.Logf("%d sequences, %d requests, %d notifications", *sequences, c.requests, c.notifications)
}

// comparison compares sequences with one real server. Each has sessions and a root node of its own.
type comparison struct {
	t             *testing.T
	addr          string
	admin         realSession
	roots         int
	requests      int
	notifications int
}

// shrink leaves out steps as long as the sequence still ends with a difference.
func (c *comparison) shrink(steps []step) []step {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for from := 0; from+size < len(steps); {
			fewer := slices.Delete(slices.Clone(steps), from, from+size)
			if at, _ := c.compare(fewer); at >= 0 {
				steps = fewer[:at+1]
			} else {
				from += size
			}
		}
	}
	return steps
}

// barrier is the number of the request that ends the messages to a session after a step.
const barrier = 1 << 30

// pingXid is the number of each ping.
const pingXid = -2

// exists is a request that all sessions may send.
func exists() jute.Message {
	return encode(znode.Request{Xid: barrier, Op: znode.OpExists, Path: "/"}, "", 0)
}

// compare executes a sequence, and returns the index of the first step with a difference, and the difference; -1 if
// there is none.
func (c *comparison) compare(steps []step) (at int, difference string) {
	c.roots++
	r := run{comparison: c, root: fmt.Sprintf("/r%d", c.roots)}
	c.must(c.admin.send(exists()))
	head := c.receive(&c.admin, barrier)[0]
	head.Int()
	r.base = head.Long()
	r.model = newModel(r.base, sessions)
	for i := range r.real {
		timeout, err := r.real[i].connect(c.t.Context(), c.addr)
		c.must(err)
		r.model.apply(r.model.prepare(znode.Request{Op: znode.OpCreateSession, Timeout: timeout}, r.real[i].id))
	}
	defer r.end()
	all := []znode.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}
	if d := r.step(step{requests: []znode.Request{{Op: znode.OpCreate, ACL: all}}}); d != "" {
		c.t.Fatalf("creating the root of a sequence: %s", d)
	}
	for i, s := range steps {
		if d := r.step(s); d != "" {
			return i, d
		}
	}
	return -1, ""
}

func (c *comparison) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal("the real server: ", err)
	}
}

func (c *comparison) receive(s *realSession, xid int32) []jute.Message {
	c.t.Helper()
	all, err := s.until(xid)
	c.must(err)
	return all
}

// run is one execution of a sequence.
type run struct {
	*comparison
	model  *model
	real   [sessions]realSession
	closed [sessions]bool
	root   string
	base   int64 // the last zxid before it
	xid    int32 // of the last request
}

// end ends the sessions, also after a difference: no later run sees them expire.
func (r *run) end() {
	for i := range r.real {
		if r.closed[i] {
			continue
		}
		c := &r.real[i]
		r.must(c.send(encode(znode.Request{Op: znode.OpCloseSession}, "", 0)))
		r.receive(c, 0)
		r.must(c.conn.Close())
	}
}

// step executes a step, collects the messages of both servers to all sessions, and returns the difference.
func (r *run) step(s step) string {
	if r.closed[s.session] {
		return "" // a closeSession before it was not left out
	}
	if s.reconnect {
		r.reconnect(s.session)
		return ""
	}
	c := &r.real[s.session]
	ops, messages := map[int32]znode.Op{}, []jute.Message(nil)
	for _, request := range s.requests {
		if r.xid++; request.Op == znode.OpPing {
			request.Xid = pingXid
		} else {
			request.Xid = r.xid
		}
		ops[request.Xid] = request.Op
		r.closed[s.session] = request.Op == znode.OpCloseSession
		messages = append(messages, encode(request, r.root, r.base))
	}
	var sent [sessions][]jute.Message
	r.must(c.send(messages...))
	r.requests += len(messages)
	r.model.requests(messages, s.session, c.id)
	for _, m := range messages {
		sent[s.session] = append(sent[s.session], r.receive(c, m.Int())...)
	}
	if r.closed[s.session] {
		if _, err := c.receive(); err == nil {
			return "the real server does not close the connection"
		}
		r.must(c.conn.Close())
	}
	for i := range r.real {
		if r.closed[i] {
			continue
		}
		r.must(r.real[i].send(exists()))
		more := r.receive(&r.real[i], barrier)
		sent[i] = append(sent[i], more[:len(more)-1]...)
	}
	actual, simulated := r.describe(sent[:], ops), r.describe(r.model.take(), ops)
	r.notifications += strings.Count(actual, "event")
	return cmp.Diff(strings.Split(actual, "\n"), strings.Split(simulated, "\n"))
}

// describe writes the messages to the sessions after requests. The end of a session deletes its nodes in the order of a
// hash set.
func (r *run) describe(sent [][]jute.Message, ops map[int32]znode.Op) string {
	var lines []string
	for i, messages := range sent {
		var part []string
		for _, m := range messages {
			head := m
			part = append(part, fmt.Sprintf("to session %d: %s", i, describe(m, ops[head.Int()], r.base)))
		}
		if slices.Contains(slices.Collect(maps.Values(ops)), znode.OpCloseSession) {
			slices.Sort(part)
		}
		lines = append(lines, part...)
	}
	return strings.Join(lines, "\n")
}

// reconnect loses the connection of a session, with its watches, and continues the session over another one.
func (r *run) reconnect(session int) {
	c := &r.real[session]
	id := c.id
	r.must(c.conn.Close())
	_, err := c.connect(r.t.Context(), r.addr)
	r.must(err)
	if c.id != id {
		r.t.Fatalf("the real server continued session %x as %x", id, c.id)
	}
	r.model.watches.Drop(session)
}
