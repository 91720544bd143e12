package cluster

import (
	"slices"

	"github.com/lockchaos/lockchaos/history"
)

// Acquire is an acquire in flight.
type Acquire struct {
	Key, Owner string
	Counted    int  // holds of the owner that its client knows of
	Alone      bool // no other client requests the key, and no client holds it
}

// GrantedIn reports whether a server's keys show that it was granted: its owner holds more than its client
// knows of, or, for a lock that stores another name for its owner, another owner holds the key than before and only
// this client has requested it.
func (r Acquire) GrantedIn(now, before map[string]history.KeyState) bool {
	k, held := now[r.Key]
	switch was := before[r.Key]; {
	case !held:
		return false
	case k.Owner == r.Owner && r.Owner != "":
		return r.Counted == 0 || k.Count > r.Counted
	case slices.Contains(k.Owners, r.Owner):
		return r.Counted == 0
	default:
		return r.Alone && (k.Owner != was.Owner || k.Permits > was.Permits)
	}
}
