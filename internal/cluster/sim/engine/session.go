package engine

func cmdPing(c *Conn, args [][]byte) {
	if len(args) > 2 {
		c.WriteError(wrongArgs("ping"))
		return
	}
	if c.resp == 2 && c.subscribed() {
		c.WriteArray(2)
		c.WriteBulkString("pong")
		if len(args) > 1 {
			c.WriteBulk(args[1])
		} else {
			c.WriteBulkString("")
		}
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
	db, ok := c.database(args[1], errNotInt)
	switch {
	case !ok:
	case c.s.cfg.Cluster && db != 0:
		c.WriteError("ERR SELECT is not allowed in cluster mode")
	default:
		c.db = db
		c.writeOK()
	}
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
		if !ok {
			c.WriteError("ERR Protocol version is not an integer or out of range")
			return
		}
		if n < 2 || n > 3 {
			c.WriteError("NOPROTO unsupported protocol version")
			return
		}
		resp, next = int(n), 2
	}
	for i := next; i < len(args); i++ {
		more := len(args) - i - 1
		switch {
		case is(args[i], "auth") && more >= 2:
			if !c.authenticate(string(args[i+1]), args[i+2]) {
				c.WriteError(errWrongPass)
				return
			}
			i += 2
		case is(args[i], "setname") && more >= 1:
			if !validName(args[i+1]) {
				c.WriteError(errBadName)
				return
			}
			c.name = string(args[i+1]) // even if a later argument is invalid
			i++
		default:
			c.WriteError("ERR Syntax error in HELLO option '" + cString(args[i]) + "'")
			return
		}
	}
	if !c.known {
		c.WriteError("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO " +
			"AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at " +
			"the same time")
		return
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
	n := 7
	c.WriteMap(n)
	for _, pair := range [][2]string{{"server", "redis"}, {"version", c.s.cfg.Version}} {
		c.WriteBulkString(pair[0])
		c.WriteBulkString(pair[1])
	}
	c.WriteBulkString("proto")
	c.WriteInt(int64(c.resp))
	c.WriteBulkString("id")
	c.WriteInt(c.id)
	for _, pair := range [][2]string{{"mode", mode}, {"role", role}} {
		c.WriteBulkString(pair[0])
		c.WriteBulkString(pair[1])
	}
	c.WriteBulkString("modules")
	c.WriteArray(0)
}

const errBadName = "ERR Client names cannot contain spaces, newlines or special characters."

func validName(b []byte) bool {
	for _, x := range b {
		if x < '!' || x > '~' {
			return false
		}
	}
	return true
}

func cmdTime(c *Conn, _ [][]byte) {
	now := c.s.cfg.Now()
	c.WriteArray(2)
	c.WriteBulk(itob(now.Unix()))
	c.WriteBulk(itob(int64(now.Nanosecond() / 1000)))
}

func cmdAsking(c *Conn, _ [][]byte)    { c.clusterOnly() }
func cmdReadonly(c *Conn, _ [][]byte)  { c.clusterOnly() }
func cmdReadwrite(c *Conn, _ [][]byte) { c.clusterOnly() }

// clusterOnly replies to commands of cluster nodes; a node replaces it.
func (c *Conn) clusterOnly() {
	if c.s.cfg.Cluster {
		c.writeOK()
		return
	}
	c.WriteError("ERR This instance has cluster support disabled")
}

// cmdWait replies for a server without replicas; a node replaces it.
func cmdWait(c *Conn, args [][]byte) {
	if _, ok := c.integer(args[1]); !ok {
		return
	}
	if ms, ok := parseInt(args[2]); !ok {
		c.WriteError("ERR timeout is not an integer or out of range")
		return
	} else if ms < 0 {
		c.WriteError("ERR timeout is negative")
		return
	}
	if c.s.replica {
		c.WriteError("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica " +
			"is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
		return
	}
	c.WriteInt(0)
}

// cmdRole replies for a master without replicas; a node replaces it.
func cmdRole(c *Conn, _ [][]byte) {
	c.WriteArray(3)
	c.WriteBulkString("master")
	c.WriteInt(0)
	c.WriteArray(0)
}
