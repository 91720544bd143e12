// Package znode is the data of one ZooKeeper server: nodes, sessions and watches, and the effects of requests, as in
// ZooKeeper 3.9. It has no socket, goroutine, timer or clock of its own; the same calls give the same bytes.
//
// A write takes two steps, as in ZooKeeper: [Tree.Prepare] turns a request into a transaction, at the leader, and
// [Tree.Apply] applies it, at every server. Reads are [Tree.Read]. [Watches] are the watches of one server.
//
// Not implemented: authentication (the only scheme of an ACL is world), quotas, nodes with a time to live
// (extendedTypesEnabled is off by default), reconfiguration, persistent watches, and paths that begin with /zookeeper.
package znode

// Op is the kind of a request or a transaction (ZooDefs.OpCode).
type Op int32

// The requests.
const (
	OpCreate          Op = 1
	OpDelete          Op = 2
	OpExists          Op = 3
	OpGetData         Op = 4
	OpSetData         Op = 5
	OpGetACL          Op = 6
	OpSetACL          Op = 7
	OpGetChildren     Op = 8
	OpSync            Op = 9
	OpPing            Op = 11
	OpGetChildren2    Op = 12
	OpCheck           Op = 13
	OpMulti           Op = 14
	OpCreate2         Op = 15
	OpCreateContainer Op = 19
	OpDeleteContainer Op = 20 // of the leader, when a container is empty
	OpSetWatches      Op = 101
	OpCreateSession   Op = -10
	OpCloseSession    Op = -11
	OpError           Op = -1 // in transactions: the request was refused
)

// Write reports whether a request of that kind is agreed on by the servers.
func (o Op) Write() bool {
	switch o {
	case OpCreate, OpDelete, OpSetData, OpSetACL, OpCheck, OpMulti, OpCreate2, OpCreateContainer, OpDeleteContainer,
		OpCreateSession, OpCloseSession:
		return true
	}
	return false
}

// Code is an error (KeeperException.Code); 0: none.
type Code int32

// The errors.
const (
	Inconsistent     Code = -2 // of an operation after the failed one in a multi
	MarshallingError Code = -5 // the server cannot decode it
	Unimplemented    Code = -6
	BadArguments     Code = -8
	NoNode           Code = -101
	NoAuth           Code = -102
	BadVersion       Code = -103
	NoChildren       Code = -108 // of an ephemeral node
	NodeExists       Code = -110
	NotEmpty         Code = -111
	SessionExpired   Code = -112
	InvalidACL       Code = -114
	SessionMoved     Code = -118
)

// Flags of a create (CreateMode).
const (
	flagEphemeral  = 1
	flagSequential = 2
	flagContainer  = 4
	flagTTL        = 5
	flagTTLSeq     = 6
)

// containerOwner is the owner of a container (EphemeralType).
const containerOwner = -1 << 63

// ACL is an entry of an access control list.
type ACL struct {
	Perms      int32
	Scheme, ID string
}

// Permissions.
const (
	permRead   = 1
	permWrite  = 2
	permCreate = 4
	permDelete = 8
	permAdmin  = 16
)

// Stat is a node's metadata as clients see it.
type Stat struct {
	Czxid, Mzxid, Ctime, Mtime int64
	Version, Cversion          int32
	Aversion                   int32
	Owner                      int64 // the session, of an ephemeral node
	DataLength, NumChildren    int32
	Pzxid                      int64
}

// Txn is a transaction.
type Txn struct {
	Zxid    int64
	Time    int64 // in milliseconds of the epoch
	Session int64 // whose request it was
	Op      Op
	Path    string
	Data    []byte
	ACL     []ACL
	Owner   int64    // create: of an ephemeral node
	Version int32    // create: cversion of the parent; else the new version of the node
	Code    Code     // of OpError
	Timeout int32    // create session: in milliseconds
	Paths   []string // close session: nodes to delete
	Parts   []Txn    // of OpMulti
}

// Result is the result of a transaction, for the reply.
type Result struct {
	Op    Op
	Code  Code
	Path  string
	Stat  Stat
	Parts []Result
}

// EventType is the kind of a notification (Watcher.Event.EventType).
type EventType int32

// The kinds.
const (
	Created         EventType = 1
	Deleted         EventType = 2
	DataChanged     EventType = 3
	ChildrenChanged EventType = 4
)

// Event is a change by a transaction.
type Event struct {
	Type   EventType
	Path   string
	Zxid   int64
	Hidden bool // by the node's ACL: it triggers watches, without notifications
}
