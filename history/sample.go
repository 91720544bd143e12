package history

import "time"

// Sample is one line of witness.jsonl: the state of one node at one instant, read through a connection that
// no fault affects. The state is of some instant between Sent and Time.
type Sample struct {
	Time     time.Duration       `json:"time"`               // when the reply was read, harness clock
	Sent     time.Duration       `json:"sent"`               // when the request was sent
	Node     string              `json:"node"`               // "n1"
	Up       bool                `json:"up"`                 // the node replied
	Role     string              `json:"role,omitempty"`     // "master" (leader) or "slave" (replica, follower); empty if it did not reply
	Offset   int64               `json:"offset,omitempty"`   // replication offset; zxid; revision; end of the write-ahead log
	Term     uint64              `json:"term,omitempty"`     // etcd: the raft term of the node
	Replicas int                 `json:"replicas,omitempty"` // connected replicas, on a master
	Keys     map[string]KeyState `json:"keys,omitempty"`     // by key; a key that is not held is absent
	// Received counts the requests of each client process to the node so far, also while it is down, sorted by client;
	// nil: not known. A client whose counts have not changed since the sample before that has them is left out.
	Received []Received `json:"received,omitempty"`
}

// Received counts the requests that the node, or its address while it is down, has received from one client process
// since the run started. Dials, Commands and Keys only grow.
type Received struct {
	Client   int            `json:"client"`             // from 0; the first, if several share a lock object
	Clients  int            `json:"clients,omitempty"`  // how many share it, from Client on; 0: one
	Dials    int            `json:"dials"`              // attempts to connect, also failed ones
	Open     int            `json:"open,omitempty"`     // connections now
	Channels int            `json:"channels,omitempty"` // subscriptions now, over all connections
	Commands int            `json:"commands,omitempty"` // received requests, except commands of scripts
	Keys     map[string]int `json:"keys,omitempty"`     // the commands that name a key of the run, by key
}

// KeyState is a lock in the memory of a node.
type KeyState struct {
	Owner   string        `json:"owner"`             // of the hold; of several owners the first, sorted
	Owners  []string      `json:"owners,omitempty"`  // everyone who shares the lock, sorted; nil: Owner alone
	Mode    string        `json:"mode,omitempty"`    // of a readers-writer lock: "read" or "write"
	Count   int           `json:"count,omitempty"`   // hold count; 0 if the lock has none
	Permits int           `json:"permits,omitempty"` // of a semaphore, held at this node; no owner is stored with them
	Limit   int           `json:"limit,omitempty"`   // size of the semaphore; 0: no semaphore
	TTL     time.Duration `json:"ttl_ns,omitempty"`  // rest of the lease; negative: no expiry, or the end of Session
	Session string        `json:"session,omitempty"` // with which the hold ends; empty: with none
	Token   uint64        `json:"token,omitempty"`   // fencing token of the hold, where servers keep it with the hold
}
