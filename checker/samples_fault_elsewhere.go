package checker

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// faultElsewhere says that a fault hit only servers that certainly had no record of any lock that was held at t, and
// which servers had one: such a fault tests nothing. "": not so, or samples do not show it. A replica has no lock of
// its own, and counts with its master; the only server of a key that a client is requesting has that lock to grant.
// What moves slots or addresses to a server takes them from another.
func (v *view) faultElsewhere(f *history.Fault, t time.Duration) string {
	s := v.records()
	if s == nil || f.Class == history.FaultMoves || v.requestedAt(targetNodes(f.Target), t) {
		return ""
	}
	var at []string
	for _, holds := range v.byKey {
		n := sort.Search(len(holds), func(n int) bool { return v.holds[holds[n]].from > t })
		for _, i := range holds[max(0, n-maxLookBack):n] {
			if v.holds[i].until <= t {
				continue
			}
			stored, without := s.mastersWithRecord(&v.holds[i], t)
			if len(stored) == 0 || slices.ContainsFunc(targetNodes(f.Target), func(node string) bool {
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
func (v *view) requestedAt(nodes []string, t time.Duration) bool {
	for _, s := range refs(v.h.Spans) {
		if s.Call > t {
			return false
		}
		if isAcquire(s.Op) && s.Return >= t && slices.Contains(nodes, v.homes()[s.Key]) {
			return true
		}
	}
	return false
}

// mastersWithRecord are the masters that had a record of a hold at some time, and the masters that certainly had none
// at t: their last samples since the grant show none or, if there is none yet, they have never stored its key.
func (s *nodeSamples) mastersWithRecord(h *hold, t time.Duration) (stored, without []string) {
	for node, samples := range s.nodes {
		had, sampled := false, false
		for i, x := range refsAt(s.h.Samples, s.between(node, h.asked, h.until)) {
			is, _ := s.presenceOf(i, h.owner, h.key)
			had, sampled = had || is != absent, sampled || x.Sent >= h.from && x.Time <= t
		}
		switch first := &s.h.Samples[samples[0]]; {
		case had:
			stored = append(stored, first.Node)
		case sampled || first.Time <= t && !s.stored[nodeKey{int32(node), h.key}]:
			without = append(without, first.Node)
		}
	}
	return stored, without
}
