package engine

import (
	"bytes"
	"slices"
	"time"
)

// Conn is the connection of one client. After it was closed by Close or by the server,
// its methods do nothing.
type Conn struct {
	s       *Server
	id      int64
	addr    string
	push    func([]byte) // nil: the connection that scripts use
	since   time.Time
	name    string
	db      int
	resp    int
	closed  bool
	closing bool // to be closed after the reply
	failed  bool // the current command has written an error
	script  bool
	noEvict bool
	known   bool // authenticated
	cmds    int64
	last    string // the last command

	out     []byte
	pending bool

	in    []byte     // received and not yet executed
	argv  [][]byte   // of the current command
	queue [][][]byte // received by Do while the connection was blocked

	multi    *transaction
	watches  []watch
	dirtyCAS bool // a watched key has changed

	wait     *waiting
	channels dict[struct{}]
	shards   dict[struct{}]
	patterns dict[struct{}]
	tracking bool
}

// waiting is the condition for which a blocked connection waits.
type waiting struct {
	until   time.Time // zero: forever
	timeout func()    // writes the reply after a timeout
	keys    []dbKey
	serve   func(key []byte) bool // tries to reply from a key that has new elements
}

// Open opens a connection from addr, as host:port.
//
// push receives replies and messages in order; the bytes are valid only during the
// call, and it must not call the server. push(nil): the server has closed the
// connection.
func (s *Server) Open(addr string, push func([]byte)) *Conn {
	s.lastID++
	s.stats.connections++
	c := &Conn{s: s, id: s.lastID, addr: addr, push: push, resp: 2, since: s.cfg.Now(), known: s.cfg.Password == ""}
	s.conns = append(s.conns, c)
	return c
}

// Refuse is the reply of a server with maxclients connections to one more before it closes it, and counts it; "": the
// connection may be opened. Connections of the server's owner may always be.
func (s *Server) Refuse() string {
	if len(s.conns) < s.maxClients {
		return ""
	}
	s.stats.refused++
	return "-ERR max number of clients reached\r\n"
}

// Trust authenticates a connection of the server's owner, without a command.
func (c *Conn) Trust() { c.known = true }

// Scripted reports whether the current command was called by a script.
func (c *Conn) Scripted() bool { return c.script }

// Queueing reports whether a transaction is being queued.
func (c *Conn) Queueing() bool { return c.multi != nil && !c.multi.running }

// MayBlock reports whether the current command may block: not in a script or a
// transaction.
func (c *Conn) MayBlock() bool { return !c.script && c.multi == nil }

// Do executes one command. While the connection is blocked, commands are queued.
func (c *Conn) Do(args [][]byte) {
	if c.closed || c.closing || len(args) == 0 {
		return
	}
	if c.wait != nil || len(c.queue) > 0 || len(c.in) > 0 {
		c.queue = append(c.queue, cloneArgs(args))
		return
	}
	c.s.enter()
	c.execute(args)
	c.s.leave()
}

// Close closes the connection; push is not called again.
func (c *Conn) Close() {
	if c.closed {
		return
	}
	c.closed = true
	c.Unblock()
	c.unwatch()
	c.unsubscribeAll()
	c.s.conns = slices.DeleteFunc(c.s.conns, func(o *Conn) bool { return o == c })
	c.in, c.out, c.queue, c.multi = nil, nil, nil, nil
}

// end closes the connection from the server's side, after flushing.
func (c *Conn) end() {
	c.closing = true
	c.dirtyOut()
}

func (c *Conn) flush() {
	c.pending = false
	if c.closed {
		return
	}
	if len(c.out) > 0 {
		c.push(c.out)
		c.out = c.out[:0]
		if cap(c.out) > 1<<16 {
			c.out = nil
		}
	}
	if c.closing {
		c.Close()
		c.push(nil)
	}
}

// Block blocks the connection until Unblock, or until an instant of the node's clock
// (zero: forever), when timeout is called to write the reply. The command must not have
// written one, and [Conn.MayBlock] must be true.
func (c *Conn) Block(until time.Time, timeout func()) {
	c.wait = &waiting{until: until, timeout: timeout}
	c.s.blocked = append(c.s.blocked, c)
}

// Unblock unblocks the connection, if it is blocked; it must be called, and the reply
// written, inside [Server.Serve]. Then the queued commands are executed.
func (c *Conn) Unblock() {
	w := c.wait
	if w == nil {
		return
	}
	c.wait = nil
	c.s.blocked = slices.DeleteFunc(c.s.blocked, func(o *Conn) bool { return o == c })
	for _, k := range w.keys {
		c.dropFrom(c.s.waiting, k)
	}
	c.s.resumed = append(c.s.resumed, c)
}

// Serve runs f, which may unblock connections, write replies to them and publish, and
// then flushes all connections.
func (s *Server) Serve(f func()) {
	s.enter()
	f()
	s.leave()
}

// resume executes requests that were received while the connection was blocked.
func (c *Conn) resume() {
	for len(c.queue) > 0 && c.wait == nil && !c.closed && !c.closing {
		args := c.queue[0]
		c.queue = c.queue[1:]
		c.execute(args)
		c.s.executed()
	}
	if len(c.queue) == 0 && len(c.in) > 0 && c.wait == nil && !c.closed && !c.closing {
		in := c.in
		c.in = nil
		c.consume(in)
	}
}

func cloneArgs(args [][]byte) [][]byte {
	n := 0
	for _, a := range args {
		n += len(a)
	}
	all := make([]byte, 0, n)
	out := make([][]byte, len(args))
	for i, a := range args {
		from := len(all)
		all = append(all, a...)
		out[i] = all[from:len(all):len(all)]
	}
	return out
}

// Feed takes bytes from the network: arrays of bulk strings, or inline commands. An
// incomplete command is buffered.
func (c *Conn) Feed(p []byte) {
	if c.closed || c.closing {
		return
	}
	if c.wait != nil || len(c.queue) > 0 {
		c.in = append(c.in, p...)
		return
	}
	if len(c.in) > 0 {
		p = append(c.in, p...)
		c.in = nil
	}
	c.s.enter()
	c.consume(p)
	c.s.leave()
}

// consume executes the commands in p, and buffers the rest.
func (c *Conn) consume(p []byte) {
	for len(p) > 0 && c.wait == nil && !c.closed && !c.closing {
		n, err := c.parse(p)
		if err != "" {
			c.WriteError("ERR Protocol error: " + err)
			c.end()
			return
		}
		if n == 0 {
			break
		}
		p = p[n:]
		if len(c.argv) > 0 {
			c.execute(c.argv)
			c.s.executed()
		}
	}
	if len(p) > 0 && !c.closed && !c.closing {
		c.in = append(c.in, bytes.Clone(p)...)
	}
}
