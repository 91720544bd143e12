package reports

import (
	"fmt"
	"html/template"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Measures of the picture, in units of its view box.
const (
	sceneWidth = 1200
	sceneLeft  = 168
	sceneRight = 1184
	maxClients = 7  // rows for clients; the others are counted
	maxFaults  = 10 // lanes for faults; the others are counted
	maxNodes   = 9  // rows for nodes; the others are counted
)

// scene is the picture that explains a run in thirty seconds: faults, who was
// master, what every node had in memory, what every client believed, and where
// two believed the same thing, all on one time axis.
type scene struct {
	r       *Run
	d       *drawing
	v       *checker.Violation // the worst; nil if there is none
	pair    *pair              // nil if the worst is not about two holds
	key     string
	y       float64
	rows    float64 // where the rows begin
	clients []int
	others  int // clients in the window that have no row
	notes   []string
}

// picture draws the scene of a run, and says what it left out.
func (r *Run) picture() (template.HTML, window, []string) {
	s := &scene{r: r, v: r.worst()}
	if s.v != nil {
		s.pair, s.key = pairOf(r, s.v), s.v.Key
	}
	if s.key == "" {
		s.key = r.busiestKey()
	}
	s.d = &drawing{id: "p", win: s.window(), left: sceneLeft, right: sceneRight}
	s.chooseClients()
	s.draw()
	label := fmt.Sprintf("Time line of %s from %s to %s", s.key, format.Instant(s.d.win.from), format.Instant(s.d.win.until))
	return s.d.done(sceneWidth, label, "scene"), s.d.win, s.notes
}

// during is the time of a violation; one that never ended ends with the history.
func (r *Run) during(v *checker.Violation) window {
	return window{v.Start, max(v.Start, min(v.End, r.History.End))}
}

// busiestKey is the key that was granted most often.
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

// window is the time that explains the worst violation, with some air; or the
// time around the first fault that bit.
func (s *scene) window() window {
	end := s.r.History.End
	w := window{0, min(end, 4*time.Second)}
	switch {
	case s.v != nil:
		w = s.r.during(s.v)
		for _, m := range s.r.story.Steps {
			w.from = min(w.from, max(m.Time, s.v.Start-20*time.Second))
			w.until = max(w.until, min(m.Time, s.v.Start+20*time.Second))
		}
		w.until = min(w.until, s.v.Start+30*time.Second)
		if s.pair != nil {
			w.from = min(w.from, max(s.pair.a.Asked, w.from-2*time.Second))
		}
	case len(s.r.faults) > 0:
		hit := s.r.firstHit()
		w = window{hit - 1500*time.Millisecond, hit + 3500*time.Millisecond}
	}
	air := max(w.length()/12, time.Millisecond)
	w = window{max(w.from-air, 0), min(w.until+air, end)}
	if w.until <= w.from {
		w.until = w.from + time.Millisecond
	}
	return w
}

// firstHit is when the first fault that bit had its effect, else the first injection.
func (r *Run) firstHit() time.Duration {
	for i := range r.faults {
		if len(r.faults[i].bites) > 0 {
			return r.faults[i].hit()
		}
	}
	return r.faults[0].inject
}

// chooseClients takes those of the violation, then those that did most in the window.
func (s *scene) chooseClients() {
	did := map[int]int{}
	for i := range s.r.holds {
		if h := &s.r.holds[i]; s.mine(h.Key) && h.From <= s.d.win.until && h.to >= s.d.win.from {
			did[h.Client] += 2
		}
	}
	n := s.r.clients()
	for i := range s.r.History.Spans {
		sp := &s.r.History.Spans[i]
		if s.mine(sp.Key) && sp.Call <= s.d.win.until && sp.Return >= s.d.win.from {
			did[sp.Process.Client(n)]++
		}
	}
	if s.v != nil {
		for _, c := range s.v.Clients {
			if !slices.Contains(s.clients, c) {
				s.clients = append(s.clients, c)
			}
		}
	}
	var rest []int
	for c := range did {
		if !slices.Contains(s.clients, c) {
			rest = append(rest, c)
		}
	}
	sort.Slice(rest, func(i, k int) bool {
		if did[rest[i]] != did[rest[k]] {
			return did[rest[i]] > did[rest[k]]
		}
		return rest[i] < rest[k]
	})
	room := max(maxClients-len(s.clients), 0)
	if len(rest) > room {
		s.others = len(rest) - room
		s.notes = append(s.notes, fmt.Sprintf("%s more were active in this window and are not drawn",
			format.Count(s.others, "client")))
		rest = rest[:room]
	}
	s.clients = append(s.clients, rest...)
}

// mine says whether a key, by its number, is the one that the scene is about.
func (s *scene) mine(key int32) bool { return s.r.keyName(key) == s.key }

func (s *scene) draw() {
	const top = 58
	s.y, s.rows = top, top
	s.defs()
	grid := s.d.b.Len()
	s.faults()
	s.masters()
	s.keys()
	s.clientRows()
	s.overlaps()
	s.d.height = s.y + 26
	rows := s.d.b.String()
	s.d.b.Reset()
	s.d.raw("%s", rows[:grid])
	s.axis()
	s.band()
	s.d.raw(`<g clip-path="url(#p-clip)">%s</g>`, rows[grid:])
	s.markers()
}

// defs are the patterns that tell states apart without colour.
func (s *scene) defs() {
	s.d.raw(`<defs><clipPath id="p-clip"><rect x="0" y="0" width="%d" height="4000"/></clipPath>`, sceneWidth)
	hatch := func(id, colour string, gap int) {
		s.d.raw(`<pattern id="%s" width="%d" height="%d" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
			`<line x1="0" y1="0" x2="0" y2="%d" stroke="%s" stroke-width="2"/></pattern>`, id, gap, gap, gap, colour)
	}
	hatch("p-down", "#b8c1c9", 6)
	hatch("p-red", "#ffffff", 9)
	for i := range 8 {
		hatch(fmt.Sprintf("p-c%d", i), palette(i), 5)
	}
	hatch("p-c-1", palette(-1), 5)
	s.d.raw(`</defs>`)
}

// axis draws the grid and its times, above and below.
func (s *scene) axis() {
	all := ticks(s.d.win, 9)
	step := time.Second
	if len(all) > 1 {
		step = all[1] - all[0]
	}
	s.d.raw(`<g class="grid" data-y1="%.0f" data-y2="%.0f">`, s.rows-6, s.y)
	for _, t := range all {
		s.d.line(t, s.rows-6, s.y, `class="tick"`)
		s.d.label(t, 0, s.rows-12, tickLabel(t, step), `class="axis"`)
		s.d.label(t, 0, s.y+16, tickLabel(t, step), `class="axis"`)
	}
	s.d.raw(`</g>`)
}

// band is the red column behind everything where the worst violation is.
func (s *scene) band() {
	if s.v == nil {
		return
	}
	s.d.bar(s.r.during(s.v), s.rows-6, s.y-s.rows+6, "", `class="band"`)
}

// group begins a group of rows with a line above it and a name on the left.
func (s *scene) group(name string) {
	s.d.raw(`<line x1="0" x2="%d" y1="%.1f" y2="%.1f" class="rule"/>`, sceneRight, s.y, s.y)
	s.d.text(0, s.y+19, name, `class="group"`)
	s.y += 5
}

// markers are the numbers of the causal chain, moved apart where they would touch.
func (s *scene) markers() {
	const apart = 23
	last := -1e9
	for _, m := range s.r.story.Steps {
		if m.Time < s.d.win.from || m.Time > s.d.win.until {
			s.notes = append(s.notes, fmt.Sprintf("step %d, at %s, is outside this window", m.N, format.Instant(m.Time)))
			continue
		}
		x := s.d.x(m.Time)
		at := max(x, last+apart)
		last = at
		s.d.raw(`<g class="marker" data-n="%d">`, m.N)
		s.d.line(m.Time, 34, s.y, `class="lead"`)
		s.d.raw(`<line class="t elbow" data-a="%d" data-dx2="%.1f" x1="%.1f" y1="34" x2="%.1f" y2="24"/>`,
			m.Time.Microseconds(), at-x, x, at)
		s.d.raw(`<g class="t" data-a="%d" data-dx="%.1f" data-y="14" transform="translate(%.1f 14)">`+
			`<circle r="10.5" class="dot"/><text y="4" class="num">%d</text>%s</g></g>`,
			m.Time.Microseconds(), at-x, at, m.N, title(format.Instant(m.Time)+": "+m.Text))
	}
}

// quorum says whether every node is a master on its own.
func (s *scene) quorum() bool { return s.r.Manifest.Topology.Kind == cluster.Quorum }
