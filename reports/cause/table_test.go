package cause

import (
	"testing"

	"github.com/lockchaos/lockchaos/reports/advice"
)

// TestEveryMechanismHasAdvice: package advice knows the name of each mechanism, except the last resorts.
func TestEveryMechanismHasAdvice(t *testing.T) {
	for _, m := range mechanisms() {
		last := m.Name == faultBetween || m.Name == Unknown
		if has := advice.Against(m.Name) != nil; has == last {
			t.Errorf("%s has advice: %v", m.Name, has)
		}
	}
	for _, name := range []string{"node-removed", "forgotten-unsynced"} { // see Cause.advisedAs
		if advice.Against(name) == nil {
			t.Errorf("there is no advice named %s", name)
		}
	}
}
