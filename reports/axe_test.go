package reports

import (
	"fmt"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/browser"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestAccessibility: axe-core 4.14.1 (Deque Systems, MPL-2.0; unmodified, from npm) finds nothing on the pages of
// five runs, light, dark and narrow, in a browser. The short form looks at three pages, each in one of these ways.
func TestAccessibility(t *testing.T) {
	d := browser.Start(t)
	d.Open(t, `<html lang="en"><title>x</title><body><main><h1>x</h1><img src="x"></main></body></html>`, browser.Options{})
	bad := d.Violations(t)
	if len(bad) != 1 || bad[0].ID != "image-alt" {
		t.Fatalf("axe-core found %+v in an image without text, want image-alt", bad)
	}
	for i, s := range allRuns() {
		page := render(t, s.load(t), "html")
		for j, o := range []browser.Options{{}, {Dark: true}, {Width: 390}} {
			if race.Short() && i != j {
				continue
			}
			t.Run(fmt.Sprintf("%s %+v", s.m.Scenario, o), func(t *testing.T) {
				d.Open(t, page, o)
				d.Run(t, `if ($('[data-do=forth]')) { $('[data-do=forth]').click(); await frame(); }`, nil)
				for _, v := range d.Violations(t) {
					t.Error(v)
				}
			})
		}
	}
}

// browsedRuns are the runs, and others, whose pages a browser opens: of allRuns two in the short form of a test.
func browsedRuns(others ...*synth) []*synth {
	if race.Short() {
		return append([]*synth{failoverRun("orders"), ensembleRun()}, others...)
	}
	return append(allRuns(), others...)
}
