package reports

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Sizes of the timeline, in units of its view box.
const (
	pictureWidth = 1200
	axisLeft     = 168
	axisRight    = 1184
	maxClients   = 7  // rows of clients
	maxFaults    = 10 // rows of faults
	maxNodes     = 9  // rows of nodes
)

// timeline is the main picture of the page. On one time axis it shows faults,
// masters, the key at every node, the holds of every client as that client saw
// them, and the overlaps.
type timeline struct {
	r       *Run
	d       *drawing
	v       *checker.Violation // the worst; nil if there is none
	pair    *pair              // nil if the worst is not about two holds
	key     string
	y       float64 // of the next row
	top     float64 // of the first row
	clients []int
	labeled [][2]float64 // where labels beside the bars of violations are
	notes   []string     // what is not drawn
}

// newTimeline chooses the violation, the key and the window to show.
func newTimeline(r *Run) *timeline {
	t := &timeline{r: r, v: r.worst}
	if t.v != nil {
		t.pair, t.key = pairOf(r, t.v), t.v.Key
	}
	if t.key == "" {
		t.key = r.busiestKey()
	}
	t.d = &drawing{window: t.window(), left: axisLeft, right: axisRight}
	return t
}

// html draws the timeline, and returns notes about what is not drawn.
func (t *timeline) html() (template.HTML, []string) {
	t.chooseClients()
	t.draw()
	label := fmt.Sprintf("Timeline of %s from %s to %s", t.key, format.Instant(t.d.window.from),
		format.Instant(t.d.window.until))
	return t.d.done(pictureWidth, label, "timeline"), t.notes
}

// notDrawn adds a note if n things are not drawn.
func (t *timeline) notDrawn(n int, noun, where string) {
	if n > 0 {
		t.notes = append(t.notes, "Not drawn: "+more(n, noun)+where)
	}
}

// busiestKey is the key with the most grants.
func (r *Run) busiestKey() string {
	n := make([]int, len(r.History.Keys))
	best := -1
	for i := range r.holds {
		k := r.holds[i].Key
		if k < 0 || int(k) >= len(n) {
			continue
		}
		n[k]++
		if best < 0 || n[k] > n[best] {
			best = int(k)
		}
	}
	if best < 0 {
		return at(r.History.Keys, 0)
	}
	return r.History.Keys[best]
}

// window is the interval that explains the worst violation, or that around the
// first fault that took effect, with a margin.
func (t *timeline) window() interval {
	end := t.r.History.End
	w := interval{0, min(end, 4*time.Second)}
	switch {
	case t.v != nil:
		w = t.r.during(t.v)
		for _, m := range t.r.story.Steps {
			w.from = min(w.from, max(m.Time, t.v.Start-20*time.Second))
			w.until = max(w.until, min(m.Time, t.v.Start+20*time.Second))
		}
		w.until = min(w.until, t.v.Start+30*time.Second)
		if t.pair != nil {
			w.from = min(w.from, max(t.pair.a.Asked, w.from-2*time.Second))
		}
	case len(t.r.faults) > 0:
		effect := t.r.firstEffect()
		w = interval{effect - 1500*time.Millisecond, effect + 3500*time.Millisecond}
	}
	margin := max(w.length()/12, time.Millisecond)
	w = interval{max(w.from-margin, 0), min(w.until+margin, end)}
	if w.until <= w.from {
		w.until = w.from + time.Millisecond
	}
	return w
}

// firstEffect is when the first fault took effect, or else was injected.
func (r *Run) firstEffect() time.Duration {
	if f := firstOf(r.faults, func(f *injection) bool { return len(f.effects) > 0 }); f != nil {
		return f.effectTime()
	}
	return r.faults[0].inject
}

// chooseClients chooses those of the violation, then the most active ones in the window.
func (t *timeline) chooseClients() {
	activity := map[int]int{}
	for h := range each(t.r.holds) {
		if t.isKey(h.Key) && h.From <= t.d.window.until && h.to >= t.d.window.from {
			activity[h.Client] += 2
		}
	}
	for sp := range each(t.r.History.Spans) {
		if t.isKey(sp.Key) && sp.Call <= t.d.window.until && sp.Return >= t.d.window.from {
			activity[t.r.clientIn(sp.Process)]++
		}
	}
	if t.v != nil {
		for _, c := range t.v.Clients {
			if !slices.Contains(t.clients, c) {
				t.clients = append(t.clients, c)
			}
		}
	}
	var others []int
	for c := range activity {
		if !slices.Contains(t.clients, c) {
			others = append(others, c)
		}
	}
	slices.SortFunc(others, func(a, b int) int {
		return cmp.Or(activity[b]-activity[a], a-b)
	})
	room := min(max(maxClients-len(t.clients), 0), len(others))
	t.notDrawn(len(others)-room, "active client", "")
	t.clients = append(t.clients, others[:room]...)
}

// isKey reports whether the timeline is about that key.
func (t *timeline) isKey(key int32) bool { return t.r.keyName(key) == t.key }

func (t *timeline) draw() {
	t.y, t.top = 58, 58
	t.defs()
	grid := t.d.b.Len()
	t.faults()
	t.masters()
	t.keys()
	t.clientRows()
	t.overlaps()
	t.d.height = t.y + 26
	rows := t.d.b.String()
	t.d.b.Reset()
	t.d.raw("%s", rows[:grid])
	t.axis()
	t.band()
	t.d.raw(`<g clip-path="url(#p-clip)">%s</g>`, rows[grid:])
	t.markers()
}

// defs are the patterns that distinguish states without color.
func (t *timeline) defs() {
	t.d.raw(`<defs><clipPath id="p-clip"><rect x="0" y="0" width="%d" height="4000"/></clipPath>`, pictureWidth)
	hatch := func(id, color string, gap int) {
		t.d.raw(`<pattern id="%s" width="%d" height="%d" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
			`<line x1="0" y1="0" x2="0" y2="%d" stroke="%s" stroke-width="2"/></pattern>`, id, gap, gap, gap, color)
	}
	hatch("p-down", "var(--free)", 6)
	hatch("p-red", "#ffffff", 9)
	for i := range 8 {
		hatch(fmt.Sprintf("p-c%d", i), palette(i), 5)
	}
	hatch("p-c-1", palette(-1), 5)
	t.d.raw(`</defs>`)
}

// axis draws the grid, with its times above and below.
func (t *timeline) axis() {
	all := ticks(t.d.window, 9)
	step := time.Second
	if len(all) > 1 {
		step = all[1] - all[0]
	}
	for _, at := range all {
		t.d.line(at, t.top-6, t.y, `class="tick"`)
		t.d.label(at, 0, t.top-12, format.Tick(at, step), `class="axis"`)
		t.d.label(at, 0, t.y+16, format.Tick(at, step), `class="axis"`)
	}
}

// band is the red background of the worst violation.
func (t *timeline) band() {
	if t.v == nil {
		return
	}
	t.d.bar(t.r.during(t.v), t.top-6, t.y-t.top+6, "", `class="band"`)
}

// group starts a group of rows: a line above it and its name on the left.
func (t *timeline) group(name string) {
	t.d.raw(`<line x1="0" x2="%d" y1="%.1f" y2="%.1f" class="rule"/>`, axisRight, t.y, t.y)
	t.d.text(0, t.y+19, name, `class="group"`)
	t.y += 5
}

// markers are the numbers of the steps, moved apart where they would overlap.
func (t *timeline) markers() {
	const apart = 23
	last := -1e9
	for _, m := range t.r.story.Steps {
		if m.Time < t.d.window.from || m.Time > t.d.window.until {
			t.notes = append(t.notes, fmt.Sprintf("Not drawn: step %d at %s, outside this window", m.N, format.Instant(m.Time)))
			continue
		}
		x := t.d.x(m.Time)
		at := max(x, last+apart)
		last = at
		t.d.raw(`<g class="marker" data-n="%d">`, m.N)
		t.d.line(m.Time, 34, t.y, `class="lead"`)
		t.d.raw(`<line class="elbow" x1="%.1f" y1="34" x2="%.1f" y2="24"/><g transform="translate(%.1f 14)">`+
			`<circle r="10.5" class="dot"/><text y="4" class="num">%d</text>%s</g></g>`,
			x, at, at, m.N, title(format.Instant(m.Time)+": "+m.Text))
	}
}

// more is "3 more faults".
func more(n int, noun string) string { return format.Number(n) + " more " + format.Plural(n, noun) }
