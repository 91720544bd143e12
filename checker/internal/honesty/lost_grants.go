package honesty

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/keeping"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// UnaskedLosses says that grants were lost while nobody asked for the lock; "" if there are none, or if in this run
// somebody asked for another one. Those that a lock had to keep violate [property.Honesty]. When no client requests a
// lock any more, because the run ends, a loss leaves nothing untested.
func UnaskedLosses(v *bounds.View, o given.Options) string {
	c := claims.New(v, o.ForProperty(property.Honesty))
	if !keeping.MayLoseGrants(c) {
		return ""
	}
	judgeAnswers(c)
	all := keeping.FindLostGrants(c)
	if slices.ContainsFunc(all, func(l claims.LostGrant) bool { return l.Asked }) {
		return ""
	}
	last := keeping.LastRequested(v)
	all = slices.DeleteFunc(all, func(l claims.LostGrant) bool {
		return l.Seen >= last || o.States(promise.KeepsGrants) && keeping.MustKeep(c, l)
	})
	if len(all) == 0 {
		return ""
	}
	text := "the grant was lost; nobody asked in time: " + keeping.LossText(c.View, all[0])
	if len(all) > 1 {
		text += ", and " + format.Count(len(all)-1, "more grant")
	}
	return text
}
