// Package engine implements the data and the commands of one Redis 7.0 server: keys,
// expiry, scripts, transactions, pub/sub, blocking commands, and Redis' own replies and
// error texts.
//
// It has no sockets, goroutines, timers or clock of its own, knows no other node, and
// is not safe for concurrent use. The owner of a [Server] feeds it bytes, calls [Server.Wake] when time has passed, and
// sends the commands of [Config.Propagate] to replicas or to a log. The same calls in the same order give the same
// bytes.
//
// Not implemented, and unknown commands here: streams, HyperLogLog, geo, BITFIELD, functions, SORT, DUMP and RESTORE,
// MONITOR, DEBUG, MEMORY, CLIENT REPLY and CLIENT PAUSE; scripts have neither cmsgpack nor struct. ACL has one user,
// default, and rules for commands and channels only.
//
// Differences from Redis: CLIENT TRACKING is accepted, but sends no invalidations. The password cannot be changed. The
// used memory is a constant for each key; maxmemory limits it, and the oldest key is evicted first. An endless script
// makes the server BUSY only if it has the loop "while true do end", and does so at once; other endless scripts are not
// stopped. Keys are removed at the instant of their expiry, not up to 0.1 s later. Elements of a set, or of a large
// hash, are in order of insertion; in Redis the order depends on a random seed. Errors raised by Lua itself have the
// text of the interpreter used here, which does not name variables.
package engine

import (
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// databases is the number of databases of a server.
const databases = 16

// Command executes one command for c: it writes exactly one reply with the Write
// methods of c, or blocks the connection with [Conn.Block]. args are valid only during
// the call.
type Command func(c *Conn, args [][]byte)

// Config configures a server. Each field but Now may be zero.
type Config struct {
	Now      func() time.Time // the node's own wall clock; it may jump
	Seed     uint64           // of RANDOMKEY, SPOP, the run ID and everything else that is random
	Version  string           // for INFO and HELLO; "" is 7.0.15
	Password string           // of the user default; "": none
	// Port and Cluster are for INFO; with Cluster, SELECT and database numbers are errors, as on a cluster node.
	Port    int
	Cluster bool
	// Extra adds commands to the table or replaces them. Names are in lower case; a subcommand is "cluster|slots".
	// A command in the table keeps its arity, flags and keys; another has any arity and no keys.
	Extra map[string]Command
	// Guard is called before each command, including commands of scripts ([Conn.Scripted]) and commands queued for a
	// transaction; if it returns text, that is the error reply ("READONLY You can't …") in place of the command.
	Guard func(c *Conn, cmd *Spec, args [][]byte) (errReply string)
	// Propagate gets the effects of one command, script or transaction, as Redis replicates them: deterministic
	// commands with absolute times, expiry as DEL. They are one unit, as between MULTI and EXEC. A SELECT among them
	// changes the database of those after it. They include PUBLISH and SPUBLISH, which are for replicas but not for
	// logs. Propagate may keep its argument, and must not call the server.
	Propagate func(db int, cmds [][][]byte)
	// Broadcast gets the messages of PUBLISH and SPUBLISH on a node of a cluster, which sends them to other nodes: they
	// are not among the effects then. It must not call the server, and may not keep its arguments.
	Broadcast func(channel, message []byte, shard bool)
	// Info replaces the text of a section of INFO; "" keeps the engine's own.
	Info func(section string) string
	// AOF returns the report of INFO persistence about an append-only file; "": there is none. It may be nil.
	AOF func() string
}

// Server is the state of one node between two restarts. Its methods, and its connections', must be called by one
// goroutine at a time, and not from within each other.
type Server struct {
	cfg     Config
	random  *rand.Rand
	runID   string
	table   map[string]*Spec
	dbs     [databases]*database
	conns   []*Conn // in the order in which they were opened
	lastID  int64
	started time.Time
	replica bool

	ms       int64 // clock in Unix milliseconds, read once per execution unit
	depth    int   // of enter
	dirty    int64 // changes so far
	version  int64 // see Version
	applying bool  // executing commands of a master or a log

	effects   []effect
	instead   [][][]byte // to propagate in place of the current command
	verbatim  bool       // false: instead applies
	unflushed []*Conn    // have output

	expiries expiryHeap
	volatile int // keys with an expiry
	watching map[dbKey][]*Conn
	waiting  map[dbKey][]*Conn // blocked on a key, in order
	ready    []dbKey
	blocked  []*Conn
	resumed  []*Conn // were blocked, and have not executed their queued commands yet

	channels dict[*subscribers]
	shards   dict[*subscribers]
	patterns dict[*subscribers]

	lua    *interpreter
	busy   *busyScript // nil: none runs
	loads  bool        // see SetLoading
	stats  stats
	config map[string]string
	rights rights

	maxClients int   // connections
	maxMemory  int64 // bytes; 0: no limit
	memoryFull bool  // when the command of the client began, after eviction
	saveFailed bool  // the last snapshot
}

// dbKey is a key in a database.
type dbKey struct {
	db  int
	key string
}

type effect struct {
	db   int
	args [][]byte
}

type stats struct {
	commands, connections, refused, expired, evicted, hits, misses int64

	errors map[string]int64 // by code
}

// New returns an empty server. It panics if cfg has no clock.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		panic("engine: Config.Now is nil")
	}
	if cfg.Version == "" {
		cfg.Version = "7.0.15"
	}
	s := &Server{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0x6c6f636b6368616f)),
		table: newTable(cfg.Extra), started: cfg.Now(),
		watching: map[dbKey][]*Conn{}, waiting: map[dbKey][]*Conn{},
		config: defaults(), rights: newRights(), maxClients: defaultMaxClients,
	}
	id := make([]byte, 20)
	for i := range id {
		id[i] = byte(s.random.Uint32())
	}
	s.runID = hex.EncodeToString(id)
	for i := range s.dbs {
		s.dbs[i] = &database{id: i}
	}
	s.ms = s.started.UnixMilli()
	return s
}

// SetReplica makes this server a replica or a master: on a replica, expired keys are
// hidden from readers, but stay until the master sends DEL.
func (s *Server) SetReplica(on bool) { s.replica = on }

// Lookup finds a command in the table by args[0], and by args[1] if it has subcommands;
// nil if there is none.
func (s *Server) Lookup(args [][]byte) *Spec {
	spec, _ := s.lookup(args)
	return spec
}

// enter begins an execution unit and leave ends it; nested units belong to the
// outermost one.
func (s *Server) enter() {
	if s.depth == 0 {
		s.ms = s.cfg.Now().UnixMilli()
	}
	s.depth++
}

func (s *Server) leave() {
	if s.depth == 1 {
		s.resumeServed()
		s.flushReplies()
	}
	s.depth--
}

// resumeServed runs when a client has nothing more to execute: clients that were
// unblocked meanwhile execute the commands that they sent while they were blocked.
func (s *Server) resumeServed() {
	s.executed()
	for len(s.resumed) > 0 {
		c := s.resumed[0]
		s.resumed = s.resumed[1:]
		c.resume()
		s.executed()
	}
}

// executed runs after each command: it propagates effects, and serves clients that are
// blocked on keys with new elements.
func (s *Server) executed() {
	s.flushEffects()
	s.serveReady()
}

// flushReplies flushes the connections, in the order in which they were first written to.
func (s *Server) flushReplies() {
	for i := 0; i < len(s.unflushed); i++ {
		s.unflushed[i].flush()
	}
	clear(s.unflushed)
	s.unflushed = s.unflushed[:0]
}

// Wake acts on the clock: it ends blocking commands that have timed out, and, unless this is a replica, removes expired
// keys.
func (s *Server) Wake() {
	if s.Busy() { // timers do not run
		return
	}
	s.enter()
	defer s.leave()
	now := s.cfg.Now()
	for i := 0; i < len(s.blocked); {
		c := s.blocked[i]
		if c.wait.until.IsZero() || c.wait.until.After(now) {
			i++
			continue
		}
		timeout := c.wait.timeout
		c.Unblock()
		timeout()
		s.flushEffects()
	}
	if !s.replica {
		s.expireDue()
	}
}

// NextWake is when Wake must be called next, by the node's clock; false: there is no
// timeout or expiry.
func (s *Server) NextWake() (time.Time, bool) {
	var next time.Time
	if s.Busy() {
		return next, false
	}
	for _, c := range s.blocked {
		if t := c.wait.until; !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if at, ok := s.nextExpiry(); ok && !s.replica {
		// A key expires after its last millisecond.
		if t := time.UnixMilli(at + 1); next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return next, !next.IsZero()
}
