// Package engine is the data and the command interpreter of one Redis server,
// as Redis 7.0 has them: keys, expiry, scripts, transactions, pub/sub, blocked
// clients, and the replies and errors in its words.
//
// It is not a server: it has no sockets, goroutines, timers or clock of its own,
// it knows no other node, and it is not safe for concurrent use. Whoever owns a
// [Server] feeds it bytes, calls [Server.Wake] when time has passed, and ships
// what [Config.Propagate] tells to replicas or to a log. The same calls in the
// same order give the same bytes.
//
// Read [Server] first, then [Conn].
//
// What it leaves out answers as a command that is unknown: streams,
// HyperLogLog, geo, BITFIELD, functions, ACL, SORT, DUMP and RESTORE, MONITOR,
// DEBUG, MEMORY, CLIENT REPLY and CLIENT PAUSE; scripts have no cmsgpack and no
// struct. CLIENT TRACKING is accepted, but tells of no changes. Memory is not
// limited, and nothing stops a script that does not end. Expired keys go at the
// instant at which they end, not up to a tenth of a second later. The order of
// the elements of a set, or of a large hash, is the one in which they were
// inserted; that of Redis depends on a random number. Where a script fails by
// itself, the text is that of the Lua interpreter used here, which names no
// variables.
package engine

import (
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// Databases is how many databases a server has.
const Databases = 16

// Command executes one command on behalf of c: it writes exactly one reply by
// the Write methods of c, or parks the connection with [Conn.Block]. args are
// valid during the call only.
type Command func(c *Conn, args [][]byte)

// Config is what a server is made of. The zero value of each field but Now is
// usable.
type Config struct {
	Now     func() time.Time // the node's own wall clock; it may jump
	Seed    uint64           // of RANDOMKEY, SPOP, the run id and whatever else is random
	Version string           // told by INFO and HELLO; "" is 7.0.15
	// Port and Cluster are told by INFO; Cluster makes SELECT and database numbers be refused as a cluster node does.
	Port    int
	Cluster bool
	// Extra adds commands to the table or replaces them. A name is in lower case; a subcommand is "cluster|slots".
	// One that is in the table keeps its arity, flags and keys; another has any arity and no keys.
	Extra map[string]Command
	// Guard is asked before each command, also before those of scripts ([Conn.Scripted]) and while a transaction is
	// queued; what it returns, if not "", is the error reply ("READONLY You can't …"), and the command is not executed.
	Guard func(c *Conn, cmd *Spec, args [][]byte) (errReply string)
	// Propagate is told the effects of one command, script or transaction, as Redis replicates them: deterministic
	// commands with absolute times, expiry as DEL. They belong together, as between MULTI and EXEC. A SELECT among them
	// changes the database of those behind it. They include PUBLISH and SPUBLISH, which replicas get and logs do not.
	// What is handed over is the receiver's to keep; it must not call the server.
	Propagate func(db int, cmds [][][]byte)
	// Info replaces the text of a section of INFO; "" leaves the engine's own.
	Info func(section string) string
}

// Server is the state of one node between two restarts. Its methods, and those
// of its connections, are to be called by one goroutine at a time, and not from
// within each other.
type Server struct {
	cfg     Config
	random  *rand.Rand
	runID   string
	table   map[string]*Spec
	dbs     [Databases]*database
	conns   []*Conn // open ones, in the order in which they came
	lastID  int64
	started time.Time
	replica bool

	ms       int64 // clock in Unix milliseconds, read once for each unit of execution
	depth    int   // of enter
	dirty    int64 // changes so far
	applying bool  // executes what a master or a log said

	effects   []effect
	instead   [][][]byte // what to propagate instead of the command that runs
	verbatim  bool       // false: instead counts
	unflushed []*Conn    // have something to push

	expiries expiryHeap
	volatile int // keys with an expiry
	watching map[place][]*Conn
	waiting  map[place][]*Conn // blocked on a key, first come first
	ready    []place
	blocked  []*Conn
	resumed  []*Conn // were blocked, and have not gone on yet

	channels dict[*subscribers]
	shards   dict[*subscribers]
	patterns dict[*subscribers]

	lua    *interpreter
	stats  stats
	config map[string]string
}

// place is a key in a database.
type place struct {
	db  int
	key string
}

type effect struct {
	db   int
	args [][]byte
}

type stats struct {
	commands, connections, expired, hits, misses int64

	errors map[string]int64 // by code
}

// New makes an empty server. It panics if cfg has no clock.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		panic("engine: a Config without a clock")
	}
	if cfg.Version == "" {
		cfg.Version = "7.0.15"
	}
	s := &Server{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0x6c6f636b6368616f)),
		table: newTable(cfg.Extra), started: cfg.Now(),
		watching: map[place][]*Conn{}, waiting: map[place][]*Conn{},
		config: defaults(),
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

// RunID is the 40 hexadecimal digits that a server is told apart by.
func (s *Server) RunID() string { return s.runID }

// SetReplica says whether this server follows a master: then expired keys are
// hidden from readers but stay until the master says DEL.
func (s *Server) SetReplica(on bool) { s.replica = on }

// Replica says what SetReplica was told last.
func (s *Server) Replica() bool { return s.replica }

// Lookup finds a command of the table, or nil; of a command with subcommands,
// args[1] chooses.
func (s *Server) Lookup(args [][]byte) *Spec {
	spec, _ := s.lookup(args)
	return spec
}

// enter begins a unit of execution and leave ends it; what is nested belongs to
// the outermost.
func (s *Server) enter() {
	if s.depth == 0 {
		s.ms = s.cfg.Now().UnixMilli()
	}
	s.depth++
}

func (s *Server) leave() {
	if s.depth == 1 {
		s.settle()
		s.flushReplies()
	}
	s.depth--
}

// settle is what follows when a client has nothing more to execute: whoever was
// served meanwhile goes on with what he sent while he was blocked.
func (s *Server) settle() {
	s.executed()
	for len(s.resumed) > 0 {
		c := s.resumed[0]
		s.resumed = s.resumed[1:]
		c.resume()
		s.executed()
	}
}

// executed is what follows each command: its effects are told, and whoever
// waited for what it brought is served.
func (s *Server) executed() {
	s.flushEffects()
	s.serveReady()
}

// flushReplies hands over what was written, in the order in which connections
// were written to first.
func (s *Server) flushReplies() {
	for i := 0; i < len(s.unflushed); i++ {
		s.unflushed[i].flush()
	}
	clear(s.unflushed)
	s.unflushed = s.unflushed[:0]
}

// Wake does what the clock makes due: it ends waits that have timed out, and,
// unless this is a replica, removes expired keys.
func (s *Server) Wake() {
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

// NextWake is when Wake has to be called next, by the node's clock; false means
// not before something else happens.
func (s *Server) NextWake() (time.Time, bool) {
	var next time.Time
	for _, c := range s.blocked {
		if t := c.wait.until; !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if at, ok := s.nextExpiry(); ok && !s.replica {
		// A key is there until its time has come, and gone when it is over.
		if t := time.UnixMilli(at + 1); next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return next, !next.IsZero()
}
