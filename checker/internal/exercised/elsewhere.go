package exercised

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/history"
)

// faultElsewhere says that a fault hit only servers that certainly had no record of any lock that was held at t, and
// which servers had one: such a fault tests nothing. "": not so, or samples do not show it. A replica has no lock of
// its own, and counts with its master; the only server of a key that a client is requesting has that lock to grant.
// What moves slots or addresses to a server takes them from another.
func faultElsewhere(v *bounds.View, f *history.Fault, t time.Duration) string {
	s := v.Records()
	if s == nil || f.Class == history.FaultMoves || requestedAt(v, excuse.TargetNodes(f.Target), t) {
		return ""
	}
	var at []string
	for _, holds := range v.ByKey {
		n := sort.Search(len(holds), func(n int) bool { return v.Holds[holds[n]].From > t })
		for _, i := range holds[max(0, n-ledger.MaxLookBack):n] {
			if v.Holds[i].Until <= t {
				continue
			}
			stored, without := mastersWithRecord(s, &v.Holds[i], t)
			if len(stored) == 0 || slices.ContainsFunc(excuse.TargetNodes(f.Target), func(node string) bool {
				return !slices.Contains(without, node)
			}) {
				return ""
			}
			at = append(at, stored...)
		}
	}
	if len(at) == 0 {
		return ""
	}
	slices.Sort(at)
	return fmt.Sprintf("fault %s (%d) hit %s, which had no record of the lock: it was on %s", f.Name, f.ID,
		strings.ReplaceAll(f.Target, "+", ", "), strings.Join(slices.Compact(at), ", "))
}

// requestedAt reports whether an acquire was in flight at t for a key that only one of some servers stores.
func requestedAt(v *bounds.View, nodes []string, t time.Duration) bool {
	for _, s := range refs.All(v.H.Spans) {
		if s.Call > t {
			return false
		}
		if excuse.IsAcquire(s.Op) && s.Return >= t && slices.Contains(nodes, v.Homes()[s.Key]) {
			return true
		}
	}
	return false
}

// mastersWithRecord are the masters that had a record of a hold at some time, and the masters that certainly had none
// at t: their last samples since the grant show none or, if there is none yet, they have never stored its key.
func mastersWithRecord(s *servers.NodeSamples, h *ledger.Hold, t time.Duration) (stored, without []string) {
	for node, samples := range s.Nodes {
		had, sampled := false, false
		for i, x := range refs.At(s.H.Samples, s.Between(node, h.Asked, h.Until)) {
			is, _ := s.PresenceOf(i, h.Owner, h.Key)
			had, sampled = had || is != servers.Absent, sampled || x.Sent >= h.From && x.Time <= t
		}
		switch first := &s.H.Samples[samples[0]]; {
		case had:
			stored = append(stored, first.Node)
		case sampled || first.Time <= t && !s.Stored[servers.NodeKey{Node: int32(node), Key: h.Key}]:
			without = append(without, first.Node)
		}
	}
	return stored, without
}
