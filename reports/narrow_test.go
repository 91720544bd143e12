package reports

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/testkit/browser"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// TestNarrowPageNamesRows: on a narrow screen, which shows the violation first, the names of the rows are in sight.
func TestNarrowPageNamesRows(t *testing.T) {
	d := browser.Start(t)
	d.Open(t, render(t, ensembleRun().load(t), "html"), browser.Options{Width: 390})
	var names []string
	d.Run(t, `const wide = $('svg.timeline').closest('.wide');
		await frame();
		const seen = wide.getBoundingClientRect();
		return [].slice.call(document.querySelectorAll('.pins text')).filter(function (text) {
			const at = text.getBoundingClientRect();
			return wide.scrollLeft > 0 && at.left >= seen.left && at.right < seen.left + 100;
		}).map((text) => text.textContent)`, &names)
	var broken []string
	d.Run(t, `return [].slice.call(document.querySelectorAll('td b')).filter((b) => b.getClientRects().length > 1)
		.map((b) => b.textContent)`, &broken)
	if len(broken) > 0 {
		t.Errorf("names broken into lines: %q", broken)
	}
	want := []string{"n1", "n2", "n3", "client 0", "client 1", "FAULTS", "LEADER", "OVERLAP"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// TestNarrowPageCutsNoMarker: a narrow screen shows the violation first, and cuts no number of a step at its edges.
func TestNarrowPageCutsNoMarker(t *testing.T) {
	d := browser.Start(t)
	step := 10
	if race.Short() {
		step = 190
	}
	for _, s := range allRuns() {
		page := render(t, s.load(t), "html")
		if s.j.Verdict != checker.Unsafe {
			continue
		}
		for width := 320; width <= 700; width += step {
			d.Open(t, page, browser.Options{Width: width})
			var seen struct {
				Cut     []string
				Markers int
			}
			d.Run(t, `const edge = $('svg.timeline').closest('.wide').getBoundingClientRect();
				const dots = [...document.querySelectorAll('.marker .dot')];
				const cut = dots.filter((dot) => {
					const box = dot.getBoundingClientRect();
					return [edge.left, edge.right].some((x) => box.left < x && x < box.right);
				});
				return {Cut: cut.map((dot) => dot.parentNode.textContent), Markers: dots.length}`, &seen)
			if len(seen.Cut) > 0 || seen.Markers < 3 {
				t.Errorf("%s at %d px: %d markers, cut: %q", s.m.Scenario, width, seen.Markers, seen.Cut)
			}
		}
	}
}

// TestExplainedOverlapIsOnTop: of overlaps at the same time, the explained one covers the others, and no label but its
// own is on it.
func TestExplainedOverlapIsOnTop(t *testing.T) {
	s := failoverRun("orders")
	worst := s.j.Results[0].Violations[0]
	inside := worst
	inside.Start, inside.End, inside.Severity = worst.Start+ms(300), worst.End-ms(300), worst.Severity-ms(600)
	s.j.Results[0].Violations = []checker.Violation{worst, inside}
	svg, _ := timeline.New(s.load(t)).HTML()
	page := string(svg)
	bars := regexp.MustCompile(`<rect class="red( main)?"`).FindAllString(page, -1)
	if len(bars) < 2 || !strings.Contains(bars[len(bars)-1], "main") {
		t.Errorf("bars in the order of drawing: %q, want the explained one last", bars)
	}
	labels := regexp.MustCompile(`class="in strong"[^>]*>([^<]*)<`).FindAllStringSubmatch(page, -1)
	if len(labels) != 1 || labels[0][1] != "1.83 s" {
		t.Errorf("labels %q, want 1.83 s alone", labels)
	}
}
