// Package timeline shows when things happened: the picture of holds, faults and servers in the page, its data as
// columns for the script of the page, and plots as SVG and PNG.
package timeline

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
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

// Timeline is the main picture of the page. On one time axis it shows faults,
// masters, the key at every node, the holds of every client as that client saw
// them, and the overlaps.
type Timeline struct {
	r       *evidence.Run
	D       *drawing
	v       *checker.Violation // the worst; nil if there is none
	pair    *overlap.Pair      // nil if the worst is not about two holds
	Key     string
	y       float64 // of the next row
	top     float64 // of the first row
	clients []int
	labeled [][2]float64 // where labels beside the bars of violations are
	notes   []string     // the parts that are not drawn
}

// New chooses the violation, the key and the window to show.
func New(r *evidence.Run) *Timeline {
	t := &Timeline{r: r, v: r.Worst}
	if t.v != nil {
		t.pair, t.Key = overlap.Of(r, t.v), t.v.Key
	}
	if t.Key == "" {
		t.Key = busiestKey(r)
	}
	t.D = &drawing{Window: t.window(), left: axisLeft, right: axisRight}
	return t
}

// HTML draws the timeline, and returns notes about omitted parts.
func (t *Timeline) HTML() (template.HTML, []string) {
	t.chooseClients()
	t.draw()
	label := fmt.Sprintf("Timeline of %s from %s to %s", t.Key, format.Instant(t.D.Window.From),
		format.Instant(t.D.Window.Until))
	return t.D.done(pictureWidth, label, "timeline"), t.notes
}

// Clients are those with a row, once the timeline is drawn.
func (t *Timeline) Clients() []int { return t.clients }

// notDrawn adds a note if n things are not drawn.
func (t *Timeline) notDrawn(n int, noun, where string) {
	if n > 0 {
		t.notes = append(t.notes, "Not drawn: "+More(n, noun)+where)
	}
}

// busiestKey is the key with the most grants.
func busiestKey(r *evidence.Run) string {
	n := make([]int, len(r.History.Keys))
	best := -1
	for i := range r.Holds {
		k := r.Holds[i].Key
		if k < 0 || int(k) >= len(n) {
			continue
		}
		n[k]++
		if best < 0 || n[k] > n[best] {
			best = int(k)
		}
	}
	if best < 0 {
		return evidence.At(r.History.Keys, 0)
	}
	return r.History.Keys[best]
}

// window is the interval that explains the worst violation, or that around the
// first fault that took effect, with a margin.
func (t *Timeline) window() evidence.Interval {
	end := t.r.History.End
	w := evidence.Interval{From: 0, Until: min(end, 4*time.Second)}
	switch {
	case t.v != nil:
		w = t.r.During(t.v)
		for _, m := range t.r.Story.Steps {
			w.From = min(w.From, max(m.Time, t.v.Start-20*time.Second))
			w.Until = max(w.Until, min(m.Time, t.v.Start+20*time.Second))
		}
		w.Until = min(w.Until, t.v.Start+30*time.Second)
		if t.pair != nil {
			w.From = min(w.From, max(t.pair.A.Asked, w.From-2*time.Second))
		}
	case len(t.r.Faults) > 0:
		effect := firstEffect(t.r)
		w = evidence.Interval{From: effect - 1500*time.Millisecond, Until: effect + 3500*time.Millisecond}
	}
	margin := max(w.Length()/12, time.Millisecond)
	w = evidence.Interval{From: max(w.From-margin, 0), Until: min(w.Until+margin, end)}
	if w.Until <= w.From {
		w.Until = w.From + time.Millisecond
	}
	return w
}

// firstEffect is when the first fault took effect, or else was injected.
func firstEffect(r *evidence.Run) time.Duration {
	if f := evidence.FirstOf(r.Faults, func(f *evidence.Fault) bool { return len(f.Effects) > 0 }); f != nil {
		return f.EffectTime()
	}
	return r.Faults[0].Inject
}

// chooseClients chooses the clients of the violation, then the most active ones in the window.
func (t *Timeline) chooseClients() {
	activity := map[int]int{}
	for h := range evidence.Each(t.r.Holds) {
		if t.isKey(h.Key) && h.From <= t.D.Window.Until && h.To >= t.D.Window.From {
			activity[h.Client] += 2
		}
	}
	for sp := range evidence.Each(t.r.History.Spans) {
		if t.isKey(sp.Key) && sp.Call <= t.D.Window.Until && sp.Return >= t.D.Window.From {
			activity[t.r.ClientIn(sp.Process)]++
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
func (t *Timeline) isKey(key int32) bool { return t.r.KeyName(key) == t.Key }

func (t *Timeline) draw() {
	t.y, t.top = 58, 58
	t.defs()
	grid := t.D.b.Len()
	t.faults()
	t.masters()
	t.keys()
	t.clientRows()
	t.overlaps()
	t.D.height = t.y + 26
	rows := t.D.b.String()
	t.D.b.Reset()
	t.D.raw("%s", rows[:grid])
	t.axis()
	t.band()
	t.D.raw(`<g clip-path="url(#p-clip)">%s</g>`, rows[grid:])
	t.markers()
}

// defs are the patterns that distinguish states without color.
func (t *Timeline) defs() {
	t.D.raw(`<defs><clipPath id="p-clip"><rect x="0" y="0" width="%d" height="4000"/></clipPath>`, pictureWidth)
	hatch := func(id, color string, gap int) {
		t.D.raw(`<pattern id="%s" width="%d" height="%d" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
			`<line x1="0" y1="0" x2="0" y2="%d" stroke="%s" stroke-width="2"/></pattern>`, id, gap, gap, gap, color)
	}
	hatch("p-down", "var(--free)", 6)
	hatch("p-red", "#ffffff", 9)
	for i := range 8 {
		hatch(fmt.Sprintf("p-c%d", i), Palette(i), 5)
	}
	hatch("p-c-1", Palette(-1), 5)
	t.D.raw(`</defs>`)
}

// axis draws the grid, with its times above and below.
func (t *Timeline) axis() {
	all := ticks(t.D.Window, 9)
	step := time.Second
	if len(all) > 1 {
		step = all[1] - all[0]
	}
	for _, at := range all {
		t.D.line(at, t.top-6, t.y, `class="tick"`)
		t.D.tick(at, t.top-12, step)
		t.D.tick(at, t.y+16, step)
	}
}

// band is the red background of the worst violation.
func (t *Timeline) band() {
	if t.v == nil {
		return
	}
	t.D.bar(t.r.During(t.v), t.top-6, t.y-t.top+6, "", `class="band"`)
}

// group starts a group of rows: a line above it and its name on the left.
func (t *Timeline) group(name string) {
	t.D.raw(`<line x1="0" x2="%d" y1="%.1f" y2="%.1f" class="rule"/>`, axisRight, t.y, t.y)
	t.D.text(0, t.y+19, name, `class="group"`)
	t.y += 5
}

// markers are the numbers of the steps, moved apart where they would overlap.
func (t *Timeline) markers() {
	const apart = 23
	last := -1e9
	for _, m := range t.r.Story.Steps {
		if m.Time < t.D.Window.From || m.Time > t.D.Window.Until {
			t.notes = append(t.notes, fmt.Sprintf("Not drawn: step %d at %s, outside this window", m.N, format.Instant(m.Time)))
			continue
		}
		x := t.D.x(m.Time)
		at := max(x, last+apart)
		last = at
		t.D.raw(`<g class="marker" data-n="%d">`, m.N)
		t.D.line(m.Time, 34, t.y, `class="lead"`)
		t.D.raw(`<line class="elbow" x1="%.1f" y1="34" x2="%.1f" y2="24"/><g transform="translate(%.1f 14)">`+
			`<circle r="10.5" class="dot"/><text y="4" class="num">%d</text>%s</g></g>`,
			x, at, at, m.N, title(format.Instant(m.Time)+": "+m.Text))
	}
}

// More is "3 more faults".
func More(n int, noun string) string { return format.Number(n) + " more " + format.Plural(n, noun) }
