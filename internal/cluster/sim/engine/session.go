package engine

import (
	"bytes"
	"math"
	"slices"
)

func cmdPing(c *Conn, args [][]byte) {
	c.FailIf(len(args) > 2, wrongArgs("ping"))
	if c.resp == 2 && c.subscribed() {
		text := bytes.Join(args[1:], nil) // of none, or one
		c.Write([]any{"pong", text})
		return
	}
	if len(args) > 1 {
		c.WriteBulk(args[1])
		return
	}
	c.WriteStatus("PONG")
}

func cmdEcho(c *Conn, args [][]byte) { c.WriteBulk(args[1]) }

func cmdSelect(c *Conn, args [][]byte) {
	db := c.database(args[1])
	c.FailIf(c.s.cfg.Cluster && db != 0, "ERR SELECT is not allowed in cluster mode")
	c.db = db
	c.writeOK()
}

func cmdQuit(c *Conn, _ [][]byte) {
	c.writeOK()
	c.end()
}

func cmdReset(c *Conn, _ [][]byte) {
	c.unsubscribeAll()
	c.discard()
	c.db, c.resp, c.name, c.tracking, c.known = 0, 2, "", false, c.s.cfg.Password == ""
	c.WriteStatus("RESET")
}

func cmdAuth(c *Conn, args [][]byte) {
	switch {
	case len(args) > 3:
		c.WriteError(errSyntax)
	case len(args) == 2 && c.s.cfg.Password == "":
		c.WriteError("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
	case len(args) == 2 && c.authenticate("default", args[1]), len(args) == 3 && c.authenticate(string(args[1]), args[2]):
		c.writeOK()
	default:
		c.WriteError(errWrongPass)
	}
}

const errWrongPass = "WRONGPASS invalid username-password pair or user is disabled."

// authenticate reports whether user may log in with a password. Without one of its own a user may log in with any.
func (c *Conn) authenticate(user string, password []byte) bool {
	own := c.s.cfg.Password
	if user != "default" || own != "" && string(password) != own {
		return false
	}
	c.known = true
	return true
}

func cmdHello(c *Conn, args [][]byte) {
	resp := c.resp
	next := 1
	if len(args) > 1 {
		n, ok := parseInt(args[1])
		c.FailIf(!ok, "ERR Protocol version is not an integer or out of range")
		c.FailIf(n < 2 || n > 3, "NOPROTO unsupported protocol version")
		resp, next = int(n), 2
	}
	for i := next; i < len(args); i++ {
		more := len(args) - i - 1
		switch {
		case is(args[i], "auth") && more >= 2:
			c.FailIf(!c.authenticate(string(args[i+1]), args[i+2]), errWrongPass)
			i += 2
		case is(args[i], "setname") && more >= 1:
			c.FailIf(!validName(args[i+1]), errBadName)
			c.name = string(args[i+1]) // even if a later argument is invalid
			i++
		default:
			c.Fail("ERR Syntax error in HELLO option '" + cString(args[i]) + "'")
		}
	}
	if !c.known {
		c.Fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO " +
			"AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at " +
			"the same time")
	}
	c.resp = resp
	c.writeHello()
}

func (c *Conn) writeHello() {
	mode, role := "standalone", "master"
	if c.s.cfg.Cluster {
		mode = "cluster"
	}
	if c.s.replica {
		role = "replica"
	}
	c.Write(Fields{"server", "redis", "version", c.s.cfg.Version, "proto", c.resp, "id", c.id, "mode", mode, "role", role,
		"modules", []any{}})
}

const errBadName = "ERR Client names cannot contain spaces, newlines or special characters."

func validName(b []byte) bool {
	return !slices.ContainsFunc(b, func(x byte) bool { return x < '!' || x > '~' })
}

func cmdTime(c *Conn, _ [][]byte) {
	now := c.s.cfg.Now()
	c.Write([]any{itob(now.Unix()), itob(int64(now.Nanosecond() / 1000))})
}

// clusterOnly replies to commands of cluster nodes; a node replaces it.
func clusterOnly(c *Conn, _ [][]byte) {
	c.FailIf(!c.s.cfg.Cluster, "ERR This instance has cluster support disabled")
	c.writeOK()
}

// cmdWait replies for a server without replicas; a node replaces it.
func cmdWait(c *Conn, args [][]byte) {
	c.ParseWait(args)
	c.WriteInt(0)
}

// ParseWait parses the arguments of WAIT: how many replicas, and for how many milliseconds to wait for them.
func (c *Conn) ParseWait(args [][]byte) (replicas, ms int64) {
	c.FailIf(c.s.replica, "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a "+
		"replica is configured to be writable (which is not the default) writes to replicas are just local and "+
		"are not propagated.")
	replicas = c.integer(args[1])
	ms = c.atLeast(math.MinInt64, args[2], "ERR timeout is not an integer or out of range")
	c.FailIf(ms < 0, "ERR timeout is negative")
	return replicas, ms
}

// cmdRole replies for a master without replicas; a node replaces it.
func cmdRole(c *Conn, _ [][]byte) {
	c.Write([]any{"master", 0, []any{}})
}
