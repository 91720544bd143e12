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
	if !validName(args[2]) {
		c.WriteError(errBadName)
		return
	}
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

func errClientType(b []byte) string { return "ERR Unknown client type '" + cString(b) + "'" }

// ofType reports whether a connection is of a type; false, false: unknown type.
func (c *Conn) ofType(b []byte) (yes, known bool) {
	switch {
	case is(b, "normal"):
		return !c.subscribed(), true
	case is(b, "pubsub"):
		return c.subscribed(), true
	case is(b, "master"), is(b, "replica"), is(b, "slave"):
		return false, true
	}
	return false, false
}

func cmdClientList(c *Conn, args [][]byte) {
	keep := func(*Conn) bool { return true }
	switch {
	case len(args) == 4 && is(args[2], "type"):
		if _, known := c.ofType(args[3]); !known {
			c.WriteError(errClientType(args[3]))
			return
		}
		keep = func(o *Conn) bool { yes, _ := o.ofType(args[3]); return yes }
	case len(args) > 3 && is(args[2], "id"):
		var ids []int64
		for _, a := range args[3:] {
			id, ok := parseInt(a)
			if !ok || id < 1 {
				c.WriteError("ERR Invalid client ID")
				return
			}
			ids = append(ids, id)
		}
		keep = func(o *Conn) bool { return slices.Contains(ids, o.id) }
	case len(args) != 2:
		c.WriteError(errSyntax)
		return
	}
	var b strings.Builder
	for _, o := range c.s.conns {
		if keep(o) {
			b.WriteString(o.describe() + "\n")
		}
	}
	c.WriteVerbatim(b.String())
}

// killFilter selects connections for CLIENT KILL.
type killFilter struct {
	id       int64
	addr     *string
	laddr    *string
	kind     []byte
	skipSelf bool
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
		if c.s.kill(func(o *Conn) bool { return o.addr == string(args[2]) }) == 0 {
			c.WriteError("ERR No such client")
			return
		}
		c.writeOK()
		return
	}
	f, bad := parseKill(c, args[2:])
	if bad != "" {
		c.WriteError(bad)
		return
	}
	n := c.s.kill(func(o *Conn) bool {
		kind := true
		if f.kind != nil {
			kind, _ = o.ofType(f.kind)
		}
		return kind && (f.id == 0 || o.id == f.id) && (f.addr == nil || o.addr == *f.addr) &&
			(f.laddr == nil || *f.laddr == c.s.localAddr()) && !(f.skipSelf && o == c)
	})
	c.WriteInt(int64(n))
}

// parseKill parses the filters of CLIENT KILL, or returns the error.
func parseKill(c *Conn, args [][]byte) (f killFilter, bad string) {
	f.skipSelf = true
	for i := 0; i < len(args); i += 2 {
		if i+1 == len(args) {
			return f, errSyntax
		}
		value := args[i+1]
		switch {
		case is(args[i], "id"):
			id, ok := parseInt(value)
			if !ok || id < 1 {
				return f, "ERR client-id should be greater than 0"
			}
			f.id = id
		case is(args[i], "type"):
			if _, known := c.ofType(value); !known {
				return f, errClientType(value)
			}
			f.kind = value
		case is(args[i], "addr"):
			addr := string(value)
			f.addr = &addr
		case is(args[i], "laddr"):
			addr := string(value)
			f.laddr = &addr
		case is(args[i], "user"):
			if string(value) != "default" {
				return f, "ERR No such user '" + cString(value) + "'"
			}
		case is(args[i], "skipme") && (is(value, "yes") || is(value, "no")):
			f.skipSelf = is(value, "yes")
		default:
			return f, errSyntax
		}
	}
	return f, ""
}

func cmdClientNoEvict(c *Conn, args [][]byte) {
	if !is(args[2], "on") && !is(args[2], "off") {
		c.WriteError(errSyntax)
		return
	}
	c.noEvict = is(args[2], "on")
	c.writeOK()
}

// cmdClientTracking accepts the plain form, but sends no invalidation messages.
func cmdClientTracking(c *Conn, args [][]byte) {
	if !is(args[2], "on") && !is(args[2], "off") || len(args) > 3 {
		c.WriteError(errSyntax)
		return
	}
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
	fail := false
	if len(args) > 4 {
		c.WriteError("ERR unknown subcommand or wrong number of arguments for 'unblock'. Try CLIENT HELP.")
		return
	}
	if len(args) == 4 && is(args[3], "error") {
		fail = true
	} else if len(args) == 4 && !is(args[3], "timeout") {
		c.WriteError("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
		return
	}
	id, ok := c.integer(args[2])
	if !ok {
		return
	}
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
