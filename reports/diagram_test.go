package reports

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/testkit/browser"
	"github.com/lockchaos/lockchaos/reports/diagram"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// sceneOf is the scene on the page of a run.
func sceneOf(r *Run) *diagram.Scene {
	picture := timeline.New(r)
	picture.HTML()
	return diagram.New(r, picture.Key, picture.Clients())
}

// planted are runs, with the sentence of the diagram at an instant, in milliseconds, or its beginning.
type planted []struct {
	name string
	run  *synth
	at   float64
	want string
}

func (p planted) check(t *testing.T) {
	t.Helper()
	for _, c := range p {
		t.Run(c.name, func(t *testing.T) {
			got := sceneOf(c.run.load(t)).At(ms(c.at)).Sentence()
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// TestDiagramShowsPlantedFacts: what the history and the samples say about an instant, and nothing more.
func TestDiagramShowsPlantedFacts(t *testing.T) {
	blind := failoverRun("orders") // n2 was not sampled for 600 ms
	var kept []history.Sample
	for _, x := range blind.samples {
		if x.Node != "n2" || x.Time < ms(2600) || x.Time >= ms(3200) {
			kept = append(kept, x)
		}
	}
	blind.samples = kept
	unseen := failoverRun("orders")
	unseen.samples = nil
	links := failoverRun("orders")
	for i, target := range []string{"s1>n1", "client:0>n2", "n2", "client:4", "all"} {
		name := "partition"
		if target == "all" {
			name = "latency"
		}
		for k, phase := range []history.Phase{history.Injected, history.TookEffect, history.Healed} {
			links.fault(100+10*float64(k), name, history.FaultValue{ID: 10 + i, Phase: phase, Target: target})
		}
	}
	links.number()
	none := idleRun()
	none.m.Topology, none.m.Nodes = cluster.Topology{Kind: cluster.None}, nil
	planted{
		{"before the fault", failoverRun("orders"), 200, "n1 master, key: client 0 · n2 and n3 replica, key: client 0 · " +
			"client 3 and client 2 wait · client 0 believes it holds"},
		{"a grant between two samples", failoverRun("orders"), 421, "n1 master, key: absent → client 2 · " +
			"n2 and n3 replica, key: absent → client 2 · client 3 waits · client 2 believes it holds"},
		{"killed", failoverRun("orders"), 1435, "n1 down · n2 and n3 replica, key absent · client 3 believes it holds · " +
			"client 1 and client 4 wait"},
		{"promoted without the key", failoverRun("orders"), 2490, "n1 down · n2 master, key absent · " +
			"n3 replica, key absent · client 3 believes it holds · client 1 waits"},
		{"a key at the master alone", failoverRun("orders"), 3390, "n1 down · n2 master, key: client 1 · " +
			"n3 replica, key: absent → client 1 · client 3 and client 1 believe they hold"},
		{"missing samples", blind, 3000, "n1 down · n2 not sampled · n3 replica, key absent · " +
			"client 3 believes it holds · client 1 waits"},
		{"no samples", unseen, 2490, "n1 down · n2 and n3 not sampled · records of the lock not sampled: nodes were not " +
			"sampled · client 3 believes it holds · client 1 waits"},
		{"cut links", links, 115, "n1 master, key: client 0 · n2 cut off, replica, key: client 0 · " +
			"n3 replica, key: client 0 · the link of s1 to n1 cut off · the link of client 0 to n2 cut off · " +
			"every link: latency · client 3 and client 2 wait · client 0 believes it holds · client 4 cut off"},
		{"healed", links, 120, "n1 master, key: client 0 · n2 and n3 replica, key: client 0 · client 3 and client 2 wait · " +
			"client 0 believes it holds"},
		{"a paused client", stallRun(), 3200, "n1 master, key: client 0 · " +
			"client 2 paused, believes it holds, validity over · client 0 believes it holds · client 1 waits"},
		{"a client that resumed", stallRun(), 5110, "n1 master, key: client 1 · " +
			"client 2 believes it holds, validity over · client 1 believes it holds"},
		{"two of five masters down", safeRun(), 2340, "n1, n3 and n5 master, key: "},
		{"no servers", none, 100, "records of the lock not sampled: the topology has no servers · " +
			"client 0 believes it holds"},
	}.check(t)
}

// TestDiagramMoves: at each step and each event, the script draws and says what package diagram does, and the cursor of
// the timeline is there.
func TestDiagramMoves(t *testing.T) {
	d := browser.Start(t)
	crashed := stallRun() // and called again
	crashed.add(5000, history.Info, 1, history.Crash, nil)
	crashed.m.Scenario = "crashed"
	crashed.number()
	for _, s := range browsedRuns(stallRun(), crashed) {
		t.Run(s.m.Scenario, func(t *testing.T) {
			r := s.load(t)
			if len(r.Story.Steps) == 0 {
				return
			}
			d.Open(t, render(t, r, "html"), browser.Options{})
			diagramSteps(t, d, r)
			diagramEvents(t, d, r)
		})
	}
}

// moment is what a page shows: which step or event, the sentence, the marked step, and whether there is a cursor.
type moment struct {
	When, State, Label, Marked string
	Cursor                     bool
}

const noteMoment = `window.note = () => ({When: $('#when').textContent, State: $('#state').textContent,
	Label: $('svg.diagram').getAttribute('aria-label'), Marked: ($('.steps [aria-current]') || {id: ''}).id,
	Cursor: !!$('svg.timeline .cursor')});`

// diagramSteps steps through the story.
func diagramSteps(t *testing.T, d *browser.Devtools, r *Run) {
	t.Helper()
	scene := sceneOf(r)
	var got, want struct {
		Drawn []string
		Noted []moment
	}
	d.Run(t, noteMoment+`
		const got = {Drawn: [], Noted: []};
		press($('.moving'), 'Home');
		for (let n = 0; n < document.querySelectorAll('.steps li').length; n++) {
			await frame();
			got.Drawn.push($('svg.diagram').innerHTML);
			got.Noted.push(note());
			press($('.moving'), 'ArrowRight');
		}
		return got`, &got)
	for _, step := range r.Story.Steps {
		frame := scene.At(step.Time)
		svg := string(scene.SVG(frame))
		want.Drawn = append(want.Drawn, strings.TrimSuffix(svg[strings.Index(svg, ">")+1:], "</svg>"))
		want.Noted = append(want.Noted, moment{When: fmt.Sprintf("Step %d of %d", step.N, len(r.Story.Steps)),
			State: frame.Sentence(), Label: frame.Sentence(), Marked: fmt.Sprint("step", step.N), Cursor: true})
	}
	text, err := json.Marshal(want.Drawn)
	if err != nil {
		t.Fatal(err)
	}
	d.Run(t, `return `+string(text)+`.map((svg) => {
		const e = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
		e.innerHTML = svg;
		return e.innerHTML; // as a browser writes it
	})`, &want.Drawn)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps: %s", diff)
	}
}

// diagramEvents steps through the first events of the timeline.
func diagramEvents(t *testing.T, d *browser.Devtools, r *Run) {
	t.Helper()
	scene, compared := sceneOf(r), 0
	var events []moment
	d.Run(t, noteMoment+`
		const all = [], wide = $('#picture .wide');
		press(wide, 'Home');
		for (let n = 0; n < 60; n++) {
			await frame();
			const event = /event (\d+)\)/.exec($('#now').textContent);
			if (event) all.push(Object.assign(note(), {When: event[1]}));
			press(wide, 'ArrowRight');
		}
		return all`, &events)
	for _, e := range events {
		index, err := strconv.Atoi(e.When)
		if err != nil {
			t.Fatal(err)
		}
		at, _, ok := r.Describe(index)
		if !ok {
			continue
		}
		compared++
		if want := scene.At(at).Sentence(); e.State != want || !e.Cursor {
			t.Errorf("event %d: %+v, want %q", index, e, want)
		}
	}
	if compared < 10 {
		t.Errorf("%d events compared", compared)
	}
}

// TestEventsHaveLinks: #event=N moves the timeline and the diagram to an event, also of another key, and the address
// follows the cursor. Play ends at the last step.
func TestEventsHaveLinks(t *testing.T) {
	d := browser.Start(t)
	s := twoKeyRun()
	r := s.load(t)
	d.Open(t, render(t, r, "html"), browser.Options{})
	var seen []string
	d.Run(t, `const all = [];
		const note = async function () {
			await frame();
			all.push([location.hash, $('#pick-key').selectedOptions[0].text, $('#when').textContent, $('#now').textContent,
				$('svg.timeline .cursor') ? 'cursor' : ''].join(' | '));
		};
		const follow = async function (hash) {
			const changed = new Promise((done) => addEventListener('hashchange', done, {once: true}));
			location.hash = hash;
			await changed;
			await note();
		};
		await follow('#event=1');
		press($('#picture .wide'), 'ArrowRight');
		await note();
		await follow('#event=999');
		await follow('#step1');
		return all`, &seen)
	want := []string{
		"#event=1 | orders | Event 1 | 0.011 s: client 0: acquire of orders succeeds with token 1 after 1 ms (event 1). " +
			"Event 2 of 15 of orders | cursor",
		"#event=2 | orders | Event 2 | 0.020 s: client 1 invokes acquire of orders (event 2). " +
			"Event 3 of 15 of orders | cursor",
		"#event=999 | orders | Event 2 | Event 999 is not among the events of this page. | cursor",
		"#event=14 | stock | Step 1 of 5 | 3.010 s: client 2 is granted stock by n1 with token 1 (event 14). " +
			"Step 1 of 5 | cursor",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

// TestIssueIsCopied: the text has the command, the versions and the nodes and clients when the violation began.
func TestIssueIsCopied(t *testing.T) {
	s := failoverRun("orders")
	s.m.Lock = "mutex```"
	d := browser.Start(t)
	d.Open(t, render(t, s.load(t), "html"), browser.Options{})
	var copied struct{ Text, Button string }
	d.Run(t, `let text = '';
		document.addEventListener('copy', () => { text = document.activeElement.value; });
		const button = $('[data-do=issue]');
		button.click();
		return {Text: text, Button: button.textContent}`, &copied)
	if copied.Button != "Copied" {
		t.Errorf("the button has %q", copied.Button)
	}
	for _, want := range []string{"**UNSAFE: failover.** ", "```text\nchaos run --scenario failover --seed 42\n```\n",
		"At 3.390 s (step 5):\n\n```text\nn1         down (replication-hold, kill)\nn2         master, key: client 1\n" +
			"n3         replica, key: absent → client 1\nclient 3   believes it holds\nclient 1   believes it holds\n",
		"\nclient 2   no request\n",
		"\n3. **1.434 s** n1 was killed: n1 exited (event ", "topology sentinel: 1 master, 2 replicas, 3 Sentinels, " +
			"backend process, seed 42; chaos v0.1.0, go go1.26, redis 7.0.15."} {
		if !strings.Contains(copied.Text, want) {
			t.Errorf("the copied text lacks %q:\n%s", want, copied.Text)
		}
	}
	if strings.Count(copied.Text, "```") != 4 {
		t.Errorf("blocks of code that a name ends:\n%s", copied.Text)
	}
}
