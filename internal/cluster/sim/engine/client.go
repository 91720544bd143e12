package engine

import (
	"fmt"
	"slices"
	"strings"
)

func cmdClientId(c *Conn, _ [][]byte) { c.WriteInt(c.id) }

func cmdClientGetname(c *Conn, _ [][]byte) {
	if c.name == "" {
		c.WriteNull()
		return
	}
	c.WriteBulkString(c.name)
}

func cmdClientSetname(c *Conn, args [][]byte) {
	c.FailIf(!validName(args[2]), errBadName)
	c.name = string(args[2])
	c.writeOK()
}

func cmdClientInfo(c *Conn, _ [][]byte) { c.WriteVerbatim(c.describe() + "\n") }

// describe is a line of CLIENT LIST. Fields about memory and buffers are zero.
func (c *Conn) describe() string {
	flags := c.flagLetters()
	multi := -1
	if c.multi != nil {
		multi = len(c.multi.cmds)
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=0 flags=%s db=%d sub=%d psub=%d "+
		"ssub=%d multi=%d qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=1024 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r "+
		"cmd=%s user=default redir=-1 resp=%d", c.id, c.addr, c.s.localAddr(), c.id+7, c.name,
		int64(c.s.cfg.Now().Sub(c.since).Seconds()), flags, c.db, c.channels.len(), c.patterns.len(),
		c.shards.len(), multi, c.lastName(), c.resp)
}

// localAddr is where the server listens.
func (s *Server) localAddr() string { return fmt.Sprintf("127.0.0.1:%d", s.cfg.Port) }

func (c *Conn) lastName() string {
	if c.last == "" {
		return "NULL"
	}
	return c.last
}

func (c *Conn) flagLetters() string {
	var b strings.Builder
	for _, f := range []struct {
		on     bool
		letter byte
	}{
		{c.subscribed(), 'P'}, {c.multi != nil, 'x'}, {c.wait != nil, 'b'}, {c.tracking, 't'},
		{c.dirtyCAS, 'd'}, {c.closing, 'c'}, {c.noEvict, 'e'},
	} {
		if f.on {
			b.WriteByte(f.letter)
		}
	}
	if b.Len() == 0 {
		return "N"
	}
	return b.String()
}

// ofType selects the connections of a type.
func (c *Conn) ofType(b []byte) func(*Conn) bool {
	switch {
	case is(b, "normal"):
		return func(o *Conn) bool { return !o.subscribed() }
	case is(b, "pubsub"):
		return (*Conn).subscribed
	case is(b, "master"), is(b, "replica"), is(b, "slave"):
		return func(*Conn) bool { return false }
	}
	c.Fail("ERR Unknown client type '" + cString(b) + "'")
	return nil
}

func cmdClientList(c *Conn, args [][]byte) {
	keep := func(*Conn) bool { return true }
	switch {
	case len(args) == 4 && is(args[2], "type"):
		keep = c.ofType(args[3])
	case len(args) > 3 && is(args[2], "id"):
		var ids []int64
		for _, a := range args[3:] {
			ids = append(ids, c.atLeast(1, a, "ERR Invalid client ID"))
		}
		keep = func(o *Conn) bool { return slices.Contains(ids, o.id) }
	case len(args) != 2:
		c.Fail(errSyntax)
	}
	var b strings.Builder
	for _, o := range c.s.conns {
		if keep(o) {
			b.WriteString(o.describe() + "\n")
		}
	}
	c.WriteVerbatim(b.String())
}

// Kill closes all connections that f selects, from the server's side: a client reads
// the end of the stream. It returns how many there were.
func (s *Server) Kill(f func(*Conn) bool) int {
	n := 0
	s.Serve(func() { n = s.kill(f) })
	return n
}

func (s *Server) kill(f func(*Conn) bool) int {
	n := 0
	for _, o := range slices.Clone(s.conns) {
		if !o.closing && f(o) {
			o.end()
			n++
		}
	}
	return n
}

func cmdClientKill(c *Conn, args [][]byte) {
	if len(args) == 3 {
		c.FailIf(c.s.kill(func(o *Conn) bool { return o.addr == string(args[2]) }) == 0, "ERR No such client")
		c.writeOK()
		return
	}
	c.WriteInt(int64(c.s.kill(c.parseKill(args[2:]))))
}

// parseKill parses the filters of CLIENT KILL, of which the last of each kind counts.
func (c *Conn) parseKill(args [][]byte) func(*Conn) bool {
	filters, skipSelf := map[string]func(*Conn) bool{}, true
	for i := 0; i < len(args); i += 2 {
		c.FailIf(i+1 == len(args), errSyntax)
		value := args[i+1]
		switch {
		case is(args[i], "id"):
			id := c.atLeast(1, value, "ERR client-id should be greater than 0")
			filters["id"] = func(o *Conn) bool { return o.id == id }
		case is(args[i], "type"):
			filters["type"] = c.ofType(value)
		case is(args[i], "addr"):
			filters["addr"] = func(o *Conn) bool { return o.addr == string(value) }
		case is(args[i], "laddr"):
			filters["laddr"] = func(o *Conn) bool { return o.s.localAddr() == string(value) }
		case is(args[i], "user"):
			c.FailIf(string(value) != "default", "ERR No such user '"+cString(value)+"'")
		case is(args[i], "skipme") && (is(value, "yes") || is(value, "no")):
			skipSelf = is(value, "yes")
		default:
			c.Fail(errSyntax)
		}
	}
	return func(o *Conn) bool {
		for _, selects := range filters { // in any order: all have to
			if !selects(o) {
				return false
			}
		}
		return !skipSelf || o != c
	}
}

func cmdClientNoEvict(c *Conn, args [][]byte) {
	c.FailIf(!is(args[2], "on") && !is(args[2], "off"), errSyntax)
	c.noEvict = is(args[2], "on")
	c.writeOK()
}

// cmdClientTracking accepts the plain form, but sends no invalidation messages.
func cmdClientTracking(c *Conn, args [][]byte) {
	c.FailIf(!is(args[2], "on") && !is(args[2], "off") || len(args) > 3, errSyntax)
	c.tracking = is(args[2], "on")
	c.writeOK()
}

func cmdClientTrackinginfo(c *Conn, _ [][]byte) {
	flag := "off"
	if c.tracking {
		flag = "on"
	}
	c.WriteMap(3)
	c.WriteBulkString("flags")
	c.WriteSet(1)
	c.WriteBulkString(flag)
	c.WriteBulkString("redirect")
	c.WriteInt(map[bool]int64{false: -1, true: 0}[c.tracking])
	c.WriteBulkString("prefixes")
	c.WriteArray(0)
}

func cmdClientGetredir(c *Conn, _ [][]byte) {
	c.WriteInt(map[bool]int64{false: -1, true: 0}[c.tracking])
}

func cmdClientUnblock(c *Conn, args [][]byte) {
	c.FailIf(len(args) > 4, "ERR unknown subcommand or wrong number of arguments for 'unblock'. Try CLIENT HELP.")
	fail := len(args) == 4 && is(args[3], "error")
	c.FailIf(len(args) == 4 && !fail && !is(args[3], "timeout"), "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	id := c.integer(args[2])
	for _, o := range c.s.blocked {
		if o.id != id {
			continue
		}
		timeout := o.wait.timeout
		o.Unblock()
		if fail {
			o.WriteError("UNBLOCKED client unblocked via CLIENT UNBLOCK")
		} else {
			timeout()
		}
		c.WriteInt(1)
		return
	}
	c.WriteInt(0)
}
