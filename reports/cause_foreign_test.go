package reports

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/scenarios"
)

// TestForeignDataIsTheCause: a lock that takes the data of another program for a hold, or overwrites or deletes them,
// is convicted, and the headline names the data at the key.
func TestForeignDataIsTheCause(t *testing.T) {
	for lock, want := range map[string]string{"set-nx-px": "was refused at", "watch-multi": "changed or deleted them by"} {
		t.Run(lock, func(t *testing.T) {
			s, err := scenarios.Load("foreign-data", scenarios.Sets([]string{"lock=" + lock, "options={}"})...)
			if err != nil {
				t.Fatal(err)
			}
			r := runSeed(t, "sim", s, 1)
			checkCause(t, r)
			checkProofs(t, r)
			if r.Story.Cause != "foreign-data" || !strings.Contains(r.Story.Sentence, want) {
				t.Errorf("%s: %s, want %q", r.Story.Cause, r.Story.Sentence, want)
			}
		})
	}
}
