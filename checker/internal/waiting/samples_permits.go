package waiting

import (
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// MayHavePermits are the longest possible times of all permits of a key.
func MayHavePermits(v *bounds.View, key int32, o given.Options) []Occupancy {
	valid := false
	for _, s := range refs.All(v.H.Spans) {
		valid = valid || s.Key == key && s.Valid != 0 && s.Op != history.OpInspect
	}
	all := possiblyHeld(v.FreeTimes().Extents, key, true, o.Slack())
	if !valid {
		for i := range all {
			if holds := v.ByKey[key]; i >= len(holds) || v.Holds[holds[i]].FreeBy == segment.Never { // possible, or not released
				all[i].Until = segment.Never
			}
		}
	}
	for _, s := range refs.All(v.H.Spans) {
		if s.Key != key || s.Outcome != history.Fail || !excuse.IsAcquire(s.Op) {
			continue
		}
		until := segment.Later(s.Return, o.Slack())
		if s.Op == history.OpTry && s.Busy && !s.Undone { // it was refused, and nothing has to be undone
			until = s.Return
		}
		all = append(all, NewOccupancy(s, s.Call, until))
	}
	return all
}
