package reports

import (
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/testkit/browser"
)

// slowReleaseRun: a client writes to the guarded resource, and the reply to its release is late: the marker of the
// write is in the bar of the hold.
func slowReleaseRun() *synth {
	s := newSynth("slow-release", "orders", 2, cluster.Topology{Kind: cluster.Single}, 1)
	for i, until := range []float64{1000, 1900, 2900, 4100} {
		from, owner := until-700, string(rune('a'+i))
		s.hold(0, owner, 4294967311, holdTimes{from - 5, from, until, 9000})
		s.touch(until-70*float64(i), 0, owner, 4294967311, history.TouchValue{Read: int64(i), Found: int64(i)})
	}
	s.number()
	return s
}

// covered finds the labels in bars that other elements cover.
const covered = `const box = (e) => e.getBoundingClientRect();
	const seen = () => [...document.querySelectorAll('svg.timeline text.in')].filter((e) => e.checkVisibility({visibilityProperty: true}));
	const covered = (by) => seen().filter((label) => [...document.querySelectorAll(by)].some(function (e) {
		const a = box(label), b = box(e);
		return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
	})).map((e) => e.textContent);`

// TestMarkersCoverNoLabel: no marker of a guarded write is over a label, as rendered and at every zoom.
func TestMarkersCoverNoLabel(t *testing.T) {
	d := browser.Start(t)
	for _, s := range browsedRuns(slowReleaseRun()) {
		d.Open(t, render(t, s.load(t), "html"), browser.Options{})
		var found struct {
			Covered []string
			Labels  int
		}
		d.Run(t, covered+`let all = [], labels = 0;
			for (let i = 0; i < 12; i++) {
				all = all.concat(covered('.touch, .halo'));
				labels += seen().length;
				$('[data-do=in]').click();
				await frame();
			}
			return {Covered: all, Labels: labels}`, &found)
		if len(found.Covered) > 0 || found.Labels == 0 {
			t.Errorf("%s: %d labels, covered: %q", s.m.Scenario, found.Labels, found.Covered)
		}
	}
}

// TestNarrowPageCoversNoLabel: on a narrow screen no name of a row is over a label of the picture, wherever it is
// scrolled to, and a fault that is in sight first has its label in sight.
func TestNarrowPageCoversNoLabel(t *testing.T) {
	d := browser.Start(t)
	for _, s := range browsedRuns() {
		d.Open(t, render(t, s.load(t), "html"), browser.Options{Width: 390})
		var found struct {
			Covered []string
			Pins    int
			Faults  bool
		}
		d.Run(t, covered+`const wide = $('svg.timeline').closest('.wide');
			const first = $('rect.fault'), label = first && box(first.nextElementSibling), edge = box(wide);
			const out = first && (box(first).right < edge.left + 100 || box(first).left > edge.right);
			let all = [], pins = 0;
			for (let at = 0; at < wide.scrollWidth - wide.clientWidth; at += 40) {
				wide.scrollLeft = at;
				await frame();
				all = all.concat(covered('.pins rect'));
				pins += document.querySelectorAll('.pins rect').length;
			}
			return {Covered: all, Pins: pins, Faults: !first || out || label.left > edge.left &&
				label.left < edge.right}`, &found)
		if len(found.Covered) > 0 || found.Pins == 0 {
			t.Errorf("%s: %d names of rows, covered: %q", s.m.Scenario, found.Pins, found.Covered)
		}
		if !found.Faults {
			t.Errorf("%s: the bar of the first fault is in sight, its label is not", s.m.Scenario)
		}
	}
}
