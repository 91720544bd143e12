package ledger

import (
	"testing"
)

func TestUnknownHoldsSaysWhy(t *testing.T) {
	for want, owners := range map[string][UnknownCauses]int{
		"1 owner was granted the lock while a forced release was in flight: which holds were theirs is unknown":   {forcedAtGrant: 1},
		"2 owners were granted the lock while a forced release was in flight: which holds were theirs is unknown": {forcedAtGrant: 2},
		"3 owners acquired after a release of unknown outcome: which holds were theirs is unknown":                {lateRelease: 3},
		"2 owners released permits that they are not known to have had: which holds were theirs is unknown":       {MoreReleased: 2},
		"1 owner had two operations in flight at once, 1 owner acquired after a release of unknown outcome: " +
			"which holds were theirs is unknown; give every hold its own owner id": {twoAtOnce: 1, lateRelease: 1},
	} {
		if got := UnknownHolds(owners); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
