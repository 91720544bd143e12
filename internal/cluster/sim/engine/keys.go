package engine

import (
	"math"
	"slices"
)

// delete removes a key and propagates that; it reports whether the key existed.
func (c *Conn) delete(key []byte) bool {
	if c.s.find(c.db, view(key)) == nil {
		return false
	}
	c.s.remove(c.db, view(key))
	c.changed(key)
	return true
}

func cmdDel(c *Conn, args [][]byte) {
	n := 0
	for _, key := range args[1:] {
		if c.delete(key) {
			n++
		}
	}
	c.WriteInt(int64(n))
}

func cmdExists(c *Conn, args [][]byte) {
	n := 0
	for _, key := range args[1:] {
		if c.find(key) != nil {
			n++
		}
	}
	c.WriteInt(int64(n))
}

func cmdType(c *Conn, args [][]byte) {
	if o := c.find(args[1]); o != nil {
		c.WriteStatus(o.kind.String())
		return
	}
	c.WriteStatus("none")
}

func cmdRename(c *Conn, args [][]byte) { c.rename(args, false) }

func cmdRenamenx(c *Conn, args [][]byte) { c.rename(args, true) }

func (c *Conn) rename(args [][]byte, nx bool) {
	from, to := args[1], args[2]
	o := c.find(from)
	c.FailIf(o == nil, "ERR no such key")
	same := string(from) == string(to)
	if nx && (same || c.find(to) != nil) {
		c.WriteInt(0)
		return
	}
	if same {
		c.writeOK()
		return
	}
	c.s.find(c.db, view(to)) // an expired one is removed first
	c.s.remove(c.db, view(from))
	c.s.remove(c.db, view(to))
	c.s.store(c.db, to, o)
	c.s.touch(c.db, view(from))
	c.changed(to)
	if nx {
		c.WriteInt(1)
	} else {
		c.writeOK()
	}
}

func cmdMove(c *Conn, args [][]byte) {
	db := c.database(args[2])
	c.FailIf(db == c.db, "ERR source and destination objects are the same")
	o := c.find(args[1])
	if o == nil || c.s.find(db, view(args[1])) != nil {
		c.WriteInt(0)
		return
	}
	c.s.remove(c.db, view(args[1]))
	c.s.store(db, args[1], o)
	c.s.touch(db, view(args[1]))
	c.changed(args[1])
	c.WriteInt(1)
}

// database parses the number of a database.
func (c *Conn) database(b []byte) int {
	n := c.integer(b)
	c.FailIf(n < math.MinInt32 || n > math.MaxInt32,
		"ERR value is out of range, value must between -2147483648 and 2147483647")
	c.FailIf(n < 0 || n >= databases, "ERR DB index is out of range")
	return int(n)
}

func cmdCopy(c *Conn, args [][]byte) {
	db, replace := c.db, false
	for i := 3; i < len(args); i++ {
		switch {
		case is(args[i], "replace"):
			replace = true
		case is(args[i], "db") && i+1 < len(args):
			db = c.database(args[i+1])
			i++
		default:
			c.Fail(errSyntax)
		}
	}
	from, to := args[1], args[2]
	c.FailIf(db == c.db && string(from) == string(to), "ERR source and destination objects are the same")
	o := c.find(from)
	if o == nil || c.s.find(db, view(to)) != nil && !replace {
		c.WriteInt(0)
		return
	}
	o = o.clone()
	c.s.remove(db, view(to))
	c.s.store(db, to, o)
	c.s.touch(db, view(to))
	c.s.dirty++
	c.WriteInt(1)
}

func cmdKeys(c *Conn, args [][]byte) {
	var found []string
	for key, o := range c.s.dbs[c.db].keys.all() {
		if !c.s.expired(o) && match(view(args[1]), key) {
			found = append(found, key)
		}
	}
	c.writeStrings(found)
}

func cmdDbsize(c *Conn, _ [][]byte) { c.WriteInt(int64(c.s.dbs[c.db].keys.len())) }

func cmdRandomkey(c *Conn, _ [][]byte) {
	keys := &c.s.dbs[c.db].keys
	for tries := 0; keys.len() > 0; tries++ {
		key := keys.any(c.s.random)
		if c.s.find(c.db, key) != nil || c.s.replica && tries > 100 {
			c.WriteBulkString(key)
			return
		}
	}
	c.WriteNull()
}

func cmdFlushdb(c *Conn, args [][]byte) { c.flushDBs(args, []int{c.db}) }

func cmdFlushall(c *Conn, args [][]byte) {
	all := make([]int, databases)
	for i := range all {
		all[i] = i
	}
	c.flushDBs(args, all)
}

func (c *Conn) flushDBs(args [][]byte, dbs []int) {
	c.FailIf(len(args) > 2 || len(args) == 2 && !is(args[1], "async") && !is(args[1], "sync"), errSyntax)
	for _, db := range dbs {
		c.s.flush(db)
	}
	c.s.dirty++
	c.writeOK()
}

// flush empties a database. Watched keys that existed count as changed.
func (s *Server) flush(db int) {
	var gone []string
	for key, o := range s.dbs[db].keys.all() {
		if o.expires != never {
			s.volatile--
		}
		if len(s.watching[dbKey{db, key}]) > 0 {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		s.touchExpired(db, key)
	}
	s.dbs[db].keys = dict[*object]{seq: s.dbs[db].keys.seq}
}

func cmdObjectRefcount(c *Conn, args [][]byte) { c.objectInt(args[2], 1) }
func cmdObjectIdletime(c *Conn, args [][]byte) { c.objectInt(args[2], 0) }
func (c *Conn) objectInt(key []byte, n int64) {
	if c.find(key) == nil {
		c.WriteNull()
		return
	}
	c.WriteInt(n)
}

func cmdObjectFreq(c *Conn, args [][]byte) {
	if c.find(args[2]) == nil {
		c.WriteNull()
		return
	}
	c.WriteError("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when " +
		"switching between policies at runtime LRU and LFU data will take some time to adjust.")
}

func cmdObjectEncoding(c *Conn, args [][]byte) {
	o := c.find(args[2])
	if o == nil {
		c.WriteNull()
		return
	}
	c.WriteBulkString(o.encoding())
}

// encoding is the name of the representation that Redis chooses.
func (o *object) encoding() string {
	if o.kind != kindString {
		small := [...]string{kindHash: "listpack", kindList: "quicklist", kindSet: "intset", kindZSet: "listpack"}
		large := [...]string{kindHash: "hashtable", kindList: "quicklist", kindSet: "hashtable", kindZSet: "skiplist"}
		if o.raw {
			return large[o.kind]
		}
		return small[o.kind]
	}
	if _, ok := parseInt(o.str); ok && !o.raw && !o.plain {
		return "int"
	}
	if o.raw || len(o.str) > 44 {
		return "raw"
	}
	return "embstr"
}
