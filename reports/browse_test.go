package reports

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/testkit/browser"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// shape is an element of the picture.
type shape struct {
	What       string
	X, Y, W, H float64
}

// shapesOf is JavaScript that collects the shapes of the picture, without tooltips.
const shapesOf = `const shapes = () => [...document.querySelectorAll('svg.timeline rect, svg.timeline line, svg.timeline text')]
	.filter((e) => !e.closest('defs')).map(function (e) {
		const n = (a) => +e.getAttribute(a);
		const what = [e.tagName, e.getAttribute('class'), e.getAttribute('fill')].join(' ') +
			(e.tagName === 'text' ? ' ' + e.textContent : '');
		return {What: what, X: n(e.tagName === 'line' ? 'x1' : 'x'), Y: n(e.tagName === 'line' ? 'y1' : 'y'),
			W: e.tagName === 'line' ? n('x2') - n('x1') : n('width'), H: e.tagName === 'line' ? n('y2') - n('y1') : n('height')};
	});`

// TestScriptDrawsTheSamePicture: the script's drawing of the part that the page shows at first equals the page's own.
func TestScriptDrawsTheSamePicture(t *testing.T) {
	d := browser.Start(t)
	near := twoKeyRun() // two short violations, between whose bars is no room for a label
	near.m.Scenario = "near"
	for _, at := range []float64{3610, 3612} {
		v := near.j.Results[0].Violations[0]
		v.Start, v.End = ms(at), ms(at+1)
		near.j.Results[0].Violations = append(near.j.Results[0].Violations, v)
	}
	edge := idleRun() // which ends at a tick
	edge.hold(0, "own-0-bbbb", 0, holdTimes{500, 501, 999.6, 0})
	edge.m.Scenario = "edge"
	edge.number()
	for _, s := range browsedRuns(twoKeyRun(), near, edge) {
		t.Run(s.m.Scenario, func(t *testing.T) {
			var drawn struct{ Before, After []shape }
			d.Open(t, render(t, s.load(t), "html"), browser.Options{})
			d.Run(t, shapesOf+`
				const before = shapes();
				$('[data-do=reset]').click();
				await frame();
				return {Before: before, After: shapes()};`, &drawn)
			if len(drawn.Before) < 20 {
				t.Fatalf("%d shapes in the page", len(drawn.Before))
			}
			for _, x := range drawn.Before {
				if strings.HasPrefix(x.What, "text axis") && x.X > 1176 {
					t.Errorf("%+v is not inside of the picture", x)
				}
			}
			if diff := cmp.Diff(drawn.Before, drawn.After, cmp.Comparer(func(a, b float64) bool {
				return math.Abs(a-b) < 0.25
			})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// twoKeyRun has violations of two keys.
func twoKeyRun() *synth {
	s := newSynth("two-keys", "orders", 4, cluster.Topology{Kind: cluster.Single}, 1)
	s.hold(0, "own-0-aaaa", 1, holdTimes{10, 11, 900, 500})
	s.hold(1, "own-1-bbbb", 2, holdTimes{20, 700, 1200, 500})
	s.touch(1190, 1, "own-1-bbbb", 2, history.TouchValue{Read: 1, Found: 2, MaxSeen: 3})
	s.hold(2, "own-2-cccc", 3, holdTimes{1300, 1310, 1800, 500})
	s.key = "stock"
	s.hold(2, "own-2-dddd", 1, holdTimes{3000, 3010, 3900, 500})
	s.hold(3, "own-3-eeee", 2, holdTimes{3020, 3600, 4200, 500})
	s.fault(3100, "pause-client", history.FaultValue{ID: 1, Phase: history.Injected, Target: "client:2"})
	s.fault(3101, "pause-client", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "client:2",
		Detail: "stopped"})
	s.watch("n1", "master", 0, 4300, owned("own-2-dddd", 3009, 3510, 500))
	s.number()
	overlap := func(key, a, b string, from, to float64, clients ...int) checker.Violation {
		return checker.Violation{Rule: "two holds of one lock may not overlap", Text: "both held " + key, Key: key,
			Class: checker.OutlivedLease, Clients: clients, Owners: []string{a, b}, Start: ms(from), End: ms(to),
			Events: []int{s.find(history.OK, history.Process(clients[0]), history.Acquire, a),
				s.find(history.OK, history.Process(clients[1]), history.Acquire, b)}, Severity: ms(to - from)}
	}
	s.j = checker.Judgement{Verdict: checker.Unsafe, Class: checker.OutlivedLease, Results: []checker.Result{
		{Property: checker.Exclusion, Outcome: checker.Violated, Total: 2, Violations: []checker.Violation{
			overlap("stock", "own-2-dddd", "own-3-eeee", 3600, 3900, 2, 3),
			overlap("orders", "own-0-aaaa", "own-1-bbbb", 700, 900, 0, 1)}}}}
	return s
}

// TestEveryViolationHasItsPicture: a click in the strip or in the table, and the arrow keys, show a violation with its
// key, its clients and its evidence.
func TestEveryViolationHasItsPicture(t *testing.T) {
	d := browser.Start(t)
	d.Open(t, render(t, twoKeyRun().load(t), "html"), browser.Options{})
	var seen []struct {
		How, Label, Now, Steps, Key string
		Band                        bool
	}
	d.Run(t, `
		const all = [], wide = $('#picture .wide');
		const note = async function (how) {
			await frame();
			all.push({How: how, Label: $('svg.timeline').getAttribute('aria-label'), Now: $('#now').textContent,
				Steps: $('.steps').textContent.replace(/\s+/g, ' '), Key: $('#pick-key').selectedOptions[0].text,
				Band: !!$('svg.timeline .band')});
		};
		$('svg.overview [data-v="1"]').dispatchEvent(new MouseEvent('click', {bubbles: true}));
		await note('strip');
		$('td [data-v="0"]').click();
		await note('table');
		press(wide, 'ArrowDown');
		await note('down');
		$('#pick-key').value = '1';
		$('#pick-key').dispatchEvent(new Event('change'));
		await note('key');
		return all;`, &seen)
	want := []struct{ how, label, now, key string }{
		{"strip", "Timeline of orders from 0.000 s to 0.974 s",
			"Violation 1 of 2, exclusion, outlived lease: both held orders", "orders"},
		{"table", "Timeline of stock from ", "Violation 2 of 2", "stock"},
		{"down", "Timeline of orders from ", "Violation 1 of 2", "orders"},
		{"key", "Timeline of stock from 0.000 s", "Violation 1 of 2", "stock"},
	}
	for i, w := range want {
		got := seen[i]
		if got.How != w.how || !strings.HasPrefix(got.Label, w.label) || !strings.HasPrefix(got.Now, w.now) ||
			got.Key != w.key {
			t.Errorf("%s: %+v", w.how, got)
		}
	}
	if steps := seen[0].Steps; !strings.Contains(steps, "acquire of orders succeeds with token 1 after 1 ms") ||
		!strings.HasSuffix(steps, "event 3") {
		t.Errorf("the evidence of a violation: %q", steps)
	}
	if !seen[0].Band || seen[3].Band {
		t.Error("the background of a violation is missing, or in the picture of another key")
	}
}

// TestArrowKeysStep: from event to event, in their order.
func TestArrowKeysStep(t *testing.T) {
	var seen []string
	d := browser.Start(t)
	d.Open(t, render(t, twoKeyRun().load(t), "html"), browser.Options{})
	d.Run(t, `
		const all = [], wide = $('#picture .wide');
		$('td [data-v="1"]').click();
		for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowLeft', 'End', 'Home']) {
			press(wide, key);
			await frame();
			all.push($('#now').textContent + ($('svg.timeline .cursor') ? '' : ' (no cursor)'));
		}
		return all;`, &seen)
	want := []string{
		"0.010 s: client 0 invokes acquire of orders (event 0). Event 1 of 15 of orders",
		"0.011 s: client 0: acquire of orders succeeds with token 1 after 1 ms (event 1). Event 2 of 15 of orders",
		"0.020 s: client 1 invokes acquire of orders (event 2). Event 3 of 15 of orders",
		"0.011 s: client 0: acquire of orders succeeds with token 1 after 1 ms (event 1). Event 2 of 15 of orders",
		"3.101 s: pause-client on client 2 takes effect: stopped (event 17). Event 15 of 15 of orders",
		"0.010 s: client 0 invokes acquire of orders (event 0). Event 1 of 15 of orders",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

// TestOperationsAreListed: all of them, of which only the visible rows are in the document, with filters.
func TestOperationsAreListed(t *testing.T) {
	var seen struct {
		Found  []string
		Rows   []int
		First  []string
		Picked string
	}
	d := browser.Start(t)
	d.Open(t, render(t, bigRun(t), "html"), browser.Options{})
	d.Run(t, `
		const grid = $('#ops'), out = {Found: [], Rows: [], First: []};
		const note = async function () {
			await frame();
			const rows = document.querySelectorAll('#ops .rows [role=row]');
			out.Found.push($('#found').textContent);
			out.Rows.push(rows.length);
			out.First.push([...rows[0].children].map((c) => c.textContent).join('|'));
		};
		const pick = async function (id, value) {
			$(id).value = value;
			$(id).dispatchEvent(new Event('change'));
			await note();
		};
		await note();
		grid.scrollTop = 28 * 50000;
		grid.dispatchEvent(new Event('scroll'));
		await note();
		await pick('#by-client', '7');
		await pick('#by-type', 'release');
		await pick('#by-outcome', 'fail');
		await pick('#by-outcome', '');
		press(grid, 'ArrowDown'); press(grid, 'ArrowDown'); press(grid, 'Enter');
		await frame();
		out.Picked = $('#now').textContent + ' / ' + $('svg.timeline').getAttribute('aria-label');
		return out;`, &seen)
	if diff := cmp.Diff([]string{"100,001 of 100,001 entries", "100,001 of 100,001 entries", "2,000 of 100,001 entries",
		"1,000 of 100,001 entries", "0 of 100,001 entries", "1,000 of 100,001 entries"}, seen.Found); diff != "" {
		t.Error(diff)
	}
	for i, n := range seen.Rows {
		if n < 1 || n > 60 {
			t.Errorf("%d rows in the document after step %d", n, i)
		}
	}
	for i, want := range []string{"0.000 s|client 0|acquire|orders|ok|0 s|1|0", "", "0.000 s|client 7|acquire|orders|ok|",
		"0.003 s|client 7|release|orders|ok|400 µs", "no entry", "0.003 s|client 7|release"} {
		if !strings.HasPrefix(seen.First[i], want) {
			t.Errorf("step %d: first row %q, want %q", i, seen.First[i], want)
		}
	}
	if want := "0.023 s: client 7 invokes release of orders"; !strings.HasPrefix(seen.Picked, want) {
		t.Errorf("the chosen entry: %q, want %q", seen.Picked, want)
	}
}

// TestBrowseSaysWhatItLeavesOut: a history that does not fit is cut around the part that the picture shows.
func TestBrowseSaysWhatItLeavesOut(t *testing.T) {
	r := bigRun(t)
	shown := evidence.Interval{From: ms(9000), Until: ms(9001)}
	whole, err := timeline.Browse(r, shown, "orders", 5_000_000)
	if err != nil {
		t.Fatal(err)
	}
	half, err := timeline.Browse(r, shown, "orders", len(whole)/2)
	if err != nil || len(half) > len(whole)/2 || len(half) < len(whole)/4 {
		t.Errorf("%d bytes of %d, %v", len(half), len(whole), err)
	}
	if note := unpack(t, whole).Note; note != "" {
		t.Errorf("nothing is left out, and the note is %q", note)
	}
	cut := unpack(t, half)
	if !strings.Contains(cut.Note, "of 100,000 operations") || cut.From > 9_000_000 || cut.Until < 9_001_000 {
		t.Errorf("from %d to %d, note %q", cut.From, cut.Until, cut.Note)
	}
	d := timeline.NewColumns(r, evidence.Interval{From: ms(8000), Until: ms(9500)}, shown, "orders")
	if n := len(d.Ops.Call); n < 7000 || n > 8000 || d.From != 8_000_000 || d.Until != 9_500_000 {
		t.Errorf("%d operations from %d to %d", n, d.From, d.Until)
	}
	for i, op := range d.Holds.Op {
		from := d.Ops.Call[op] + d.Ops.Took[op]
		if until := from + d.Holds.Length[i] + d.Holds.Valid[i]; until < d.From || from > d.Until {
			t.Fatalf("a hold from %d to %d", from, until)
		}
	}
}

// unpack decodes the data of a page, but for its columns.
func unpack(t *testing.T, data string) (d struct {
	Note        string
	From, Until int64
}) {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestStatesOfKeys: the states that the script draws equal the timeline's.
func TestStatesOfKeys(t *testing.T) {
	for _, s := range allRuns() {
		r := s.load(t)
		part := evidence.Interval{From: 0, Until: r.History.End}
		d := timeline.NewColumns(r, part, part, s.key)
		var got, want []string
		for i := range d.States.From {
			got = append(got, fmt.Sprint(d.Nodes[d.States.Node[i]].Name, " ", d.States.Holders[d.States.Holder[i]].Label, " ",
				d.States.From[i], " ", d.States.From[i]+d.States.Length[i]))
		}
		for _, node := range r.Witness.Nodes {
			for _, st := range r.Witness.States(node, part, r.SameHolder(s.key)) {
				if _, held := st.First.Keys[s.key]; held && st.First.Up {
					want = append(want, fmt.Sprint(node, " ", r.HeldBy(s.key, &st.First).Label, " ", st.From.Microseconds(), " ",
						st.Until.Microseconds()))
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", s.m.Scenario, diff)
		}
	}
}

// TestOperationsOfOneInstantAreInOrder: entries with the same time are listed in the order of the history.
func TestOperationsOfOneInstantAreInOrder(t *testing.T) {
	s := newSynth("tie", "orders", 1, failoverRun("").m.Topology, 1)
	s.touch(500, 0, "own-0-aaaa", 1, history.TouchValue{})
	s.hold(0, "own-0-aaaa", 1, holdTimes{10, 20, 500, 900})
	s.number()
	d := browser.Start(t)
	d.Open(t, render(t, s.load(t), "html"), browser.Options{})
	var listed []string
	d.Run(t, `return [...document.querySelectorAll('#ops .rows [role=row]')].map((row) =>
		row.children[2].textContent + ' ' + row.lastChild.textContent)`, &listed)
	if diff := cmp.Diff([]string{"acquire 0", "write 2", "release 3"}, listed); diff != "" {
		t.Error(diff)
	}
}
