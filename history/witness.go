package history

import "time"

// Sample is one line of witness.jsonl: what one node looked like at one
// instant, read through a connection that no fault touches.
type Sample struct {
	Time     time.Duration       `json:"time"`               // when the answer was read, harness clock
	Sent     time.Duration       `json:"sent"`               // when the question was sent
	Node     string              `json:"node"`               // "n1"
	Up       bool                `json:"up"`                 // it answered
	Role     string              `json:"role,omitempty"`     // "master", "slave", or empty if it did not answer
	Offset   int64               `json:"offset,omitempty"`   // replication offset
	Replicas int                 `json:"replicas,omitempty"` // replicas attached (on a master)
	Keys     map[string]KeyState `json:"keys,omitempty"`     // by key; a key that is free is not there
}

// KeySeen is a lock as it stands in a node's memory.
type KeyState struct {
	Owner string        `json:"owner"`            // who holds it, as the node has it
	Count int           `json:"count,omitempty"`  // hold count; 0 if the lock keeps none
	TTL   time.Duration `json:"ttl_ns,omitempty"` // what is left of the lease; negative: no expiry
}
