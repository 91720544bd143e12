package sentinel

// Messages between Sentinels and servers, in place of the bytes of the commands and replies of the same names. A server
// answers Ping and InfoRequest, passes Hello on to the Sentinels that have sent Subscribe, and obeys ReplicaOf.
type (
	Ping        struct{}
	Pong        struct{}
	InfoRequest struct{}
	InfoReply   struct{ Info Info }
	Subscribe   struct{}

	// Hello is the message of a Sentinel about itself and the master.
	Hello struct {
		from, addr, master string
		epoch, configEpoch int64
	}

	// ReplicaOf makes the server a replica of the one at Addr, a master if that is empty; also CONFIG REWRITE and
	// CLIENT KILL.
	ReplicaOf struct{ Addr string }

	isDown struct {
		master, id string
		epoch      int64
	}
	isDownReply struct {
		down   bool
		leader string
		epoch  int64
	}
)

// Bytes of these messages on a wire.
const (
	HelloSize     = 180
	InfoReplySize = 3000
	SmallSize     = 30
)

// Info has the values that a Sentinel reads from a server's INFO.
type Info struct {
	ID       string   // run id
	Replica  bool     // else a master
	Replicas []string // addresses
	Master   string   // of a replica: address
	LinkUp   bool     // of a replica, to its master
	LinkDown int64    // milliseconds; 0: up
	Priority int
	Offset   int64
}
