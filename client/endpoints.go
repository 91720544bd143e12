package client

// Kinds of topology, in [Endpoints].
const (
	Single     = "single"     // one master
	Replicated = "replicated" // one master and replicas, promoted by hand
	Sentinel   = "sentinel"   // one master, replicas, and Sentinels that promote one of them
	Sharded    = "cluster"    // Redis Cluster: masters that share the keys, each with replicas that take over
	Quorum     = "quorum"     // N independent masters
)

// Endpoints says how a client reaches the lock servers.
type Endpoints struct {
	Kind       string   `json:"kind"`                // Single, Replicated, Sentinel, Sharded or Quorum
	Addrs      []string `json:"addrs,omitempty"`     // the first master (single, replicated), all masters (quorum, cluster); none for sentinel
	Sentinels  []string `json:"sentinels,omitempty"` // Sentinel addresses
	MasterName string   `json:"master_name,omitempty"`
	Source     string   `json:"source,omitempty"` // IP to connect from, so that faults can tell clients apart; empty: any
}
