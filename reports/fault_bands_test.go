package reports

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/reports/timeline"
)

// TestPlotsNameFaults: each plot names the fault that it shades, in a font that every system has.
func TestPlotsNameFaults(t *testing.T) {
	r := failoverRun("orders").load(t)
	for _, spec := range timeline.Plots() {
		var b strings.Builder
		if err := spec.Write(r, "svg", &b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"replication-hold · n1", "kill · n1", "Arial,Helvetica,sans-serif;"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s does not name %s", spec.Name, want)
			}
		}
	}
}
