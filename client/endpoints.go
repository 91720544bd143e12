package client

// Kinds of topology, in [Endpoints].
const (
	Single     = "single"     // one master
	Replicated = "replicated" // one master and replicas, promoted by hand
	Sentinel   = "sentinel"   // one master, replicas, and Sentinels that promote one of them
	Sharded    = "cluster"    // Redis Cluster: masters that share the keys, each with replicas that take over
	Quorum     = "quorum"     // N independent masters
)

// Endpoints are the addresses of the lock servers, as "host:port".
type Endpoints struct {
	Kind       string   `json:"kind"`                  // Single, Replicated, Sentinel, Sharded or Quorum
	Addrs      []string `json:"addrs,omitempty"`       // quorum, cluster: all masters; sentinel: none; else one
	Sentinels  []string `json:"sentinels,omitempty"`   // sentinel: where to ask for the master
	MasterName string   `json:"master_name,omitempty"` // sentinel: name of the master
	Source     string   `json:"source,omitempty"`      // IP to connect from: faults identify a client by it; empty: any
}
