package servers

import (
	"time"
)

// findHomes finds, by key, the only server that ever stored a hold of it, according to the samples of masters; "" if
// several did, as after a failover, or if none is known. After a server was away for longer than Options.NodeTimeout,
// the others may have refused all commands: then none counts as known.
func (v *View) findHomes(nodeTimeout time.Duration) []string {
	homes, s := make([]string, len(v.H.Keys)), v.Samples()
	if s == nil || v.LongestOutage() > nodeTimeout {
		return homes
	}
	for key := range homes {
		for node, samples := range s.Nodes {
			switch {
			case s.Named[NodeKey{int32(node), int32(key)}] == nil:
			case homes[key] != "":
				homes[key] = severalServers
			default:
				homes[key] = s.H.Samples[samples[0]].Node
			}
		}
		if homes[key] == severalServers {
			homes[key] = ""
		}
	}
	return homes
}

// severalServers stands for the servers of a key that has more than one.
const severalServers = "several"
